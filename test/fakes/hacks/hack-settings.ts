/** Small tasks, one for each way of grading that the hack table has a column of. */
import { examineTask } from "../../../graders/admission/examine-task.ts";
import { probes } from "../../../graders/probes/index.ts";
import type { Probe } from "../../../graders/probes/probe.ts";
import { currentOwner } from "../../../host/owner.ts";
import { docker } from "../../../sandboxes/docker.ts";
import type { Task } from "../../../schema/task.ts";
import { loadTasks } from "../../../tasks/index.ts";

export type HackSetting = {
  name: string;
  /** Head of its column. */
  title: string;
  path: string;
  grader?: object;
};

export const hackSettings: readonly HackSetting[] = [
  { name: "harbor", title: "Harbor's tests in a fresh container: T1", path: "examples/harbor/greet-file" },
  { name: "python", title: "unittest: T1", path: "commands/init/skeletons/task-python" },
  {
    name: "javascript",
    title: "`node:test`, together: T1",
    path: "examples/demo/tasks/parse-duration",
    grader: { work_runs: "together" },
  },
  { name: "javascript-apart", title: "`node:test`, apart: T2", path: "examples/demo/tasks/parse-duration" },
];

/** `no reward`: the grading measured nothing, and the rollout counts nowhere. */
export type HackOutcome = "stopped" | "paid" | "no reward";

async function taskOf({ path, grader }: HackSetting): Promise<Task> {
  const [task] = (await loadTasks(path)) as [Task];
  return { ...task, grader: { ...task.grader, ...grader } };
}

/** Outcomes by probe. Throws where the task itself does not hold, for then they show nothing. */
export async function tryHacks(
  setting: HackSetting,
  signal: AbortSignal,
  wanted: readonly Probe[] = probes,
): Promise<Record<string, HackOutcome>> {
  const owner = { run_id: "run-test-hacks", owner: await currentOwner() };
  const found = await examineTask(await taskOf(setting), docker, { ...owner, signal, times: 1, word: "table", probes: wanted });
  const other = found.reasons.find(({ code }) => code !== "hackable");
  if (other) throw new Error(`${setting.name}: ${other.message}`);
  const names = new Set(probes.map(({ name }) => name));
  const { baseline, gradings } = found;
  return Object.fromEntries(
    gradings
      .filter(({ work }) => names.has(work))
      .map(({ work, reward }) => [work, reward === null ? "no reward" : reward > (baseline ?? 0) ? "paid" : "stopped"]),
  );
}
