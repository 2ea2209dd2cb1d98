/** Small tasks, one for each way of grading that the hack table has a column of. */
import { examineTask } from "../../../graders/admission/examine-task.ts";
import { probes } from "../../../graders/probes/index.ts";
import type { Probe } from "../../../graders/probes/probe.ts";
import { currentOwner } from "../../../host/owner.ts";
import { ensureBaseImage } from "../../../sandboxes/docker/base-image.ts";
import { docker } from "../../../sandboxes/docker.ts";
import type { Task } from "../../../schema/task.ts";
import { loadTasks } from "../../../tasks/index.ts";
import { harborFolder, harborTasks } from "../harbor-tasks.ts";

export type HackSetting = {
  name: string;
  /** Head of its column. */
  title: string;
  /** The task's folder. */
  place: () => Promise<string> | string;
  grader?: object;
};

export const hackSettings: readonly HackSetting[] = [
  { name: "harbor", title: "Harbor's tests, the work in a child process: T1", place: oneOfHarbor },
  {
    name: "python",
    title: "unittest, by its log: T1",
    place: () => "commands/init/skeletons/task-python",
    grader: { work_runs: "together", command: ["python3", "-m", "unittest", "-v", "tests.test_clamp"] },
  },
  { name: "python-apart", title: "unittest, apart: T2", place: () => "commands/init/skeletons/task-python" },
  {
    name: "javascript",
    title: "`node:test`, together: T1",
    place: () => "examples/demo/tasks/parse-duration",
    grader: { work_runs: "together" },
  },
  { name: "cases", title: "a command in Python, by `cases`: T3", place: () => "commands/init/skeletons/task-cases" },
  { name: "javascript-apart", title: "`node:test`, apart: T2", place: () => "examples/demo/tasks/parse-duration" },
];

/** `no reward`: the grading measured nothing, and the rollout counts nowhere. */
export type HackOutcome = "stopped" | "paid" | "no reward";

/** No change earns a quarter there, and its tests load the work in a process of its own. Its image is made of the base image. */
async function oneOfHarbor(): Promise<string> {
  await ensureBaseImage({ signal: AbortSignal.timeout(120_000) });
  return harborFolder({ one: harborTasks[1]?.files ?? {} });
}

async function taskOf({ place, grader }: HackSetting): Promise<Task> {
  const [task] = (await loadTasks(await place())) as [Task];
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
