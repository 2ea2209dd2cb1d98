/** Small tasks, one for each way of grading that the hack table has a column of. */
import { resolve } from "node:path";
import { currentOwner } from "../../../base/host/owner.ts";
import type { Task } from "../../../base/schema/task.ts";
import { examineTask } from "../../../graders/admission/examine-task.ts";
import { probes } from "../../../graders/probes/index.ts";
import type { Probe } from "../../../graders/probes/probe.ts";
import { ensureBaseImage } from "../../../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../../../sandboxes/docker.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { pytestModules } from "../../interop/pytest/pytest.ts";
import type { Need } from "../../needs.ts";
import { harborFolder, harborTasks } from "../harbor-tasks.ts";

export type HackSetting = {
  name: string;
  /** Head of its column. */
  title: string;
  /** Beside Docker. */
  needs?: readonly Need[];
  /** The task's folder. */
  place: () => Promise<string> | string;
  /** Instead of the task's own, or beside it. */
  environment?: () => Partial<Task["environment"]>;
  grader?: object;
};

const pythonTask = "cli/commands/init/skeletons/task-python";
/** Tests of pytest's own kind, on the work of that task. */
const byPytest = {
  needs: ["pytest"],
  place: () => pythonTask,
  environment: () => ({ mounts: { "/opt/pytest": pytestModules() }, env: { PYTHONPATH: "/opt/pytest" } }),
  grader: {
    parser: "pytest",
    tests: resolve("test/fakes/hacks/pytest"),
    fail_to_pass: ["tests/test_clamp.py::test_above"],
    pass_to_pass: ["tests/test_clamp.py::test_below", "tests/test_clamp.py::test_inside"],
  },
} as const satisfies Partial<HackSetting>;
/** A fixed bug of a package, whose tests can be apart. */
const byTape = { needs: ["npm-registry"], place: () => "examples/tasks/swe-npm.jsonl#shell-quote-drive-letter" } as const;

const cTask = "test/fakes/hacks/c";

export const hackSettings: readonly HackSetting[] = [
  { name: "harbor", title: "Harbor's tests, the work in a child process: T1", place: oneOfHarbor },
  {
    name: "python",
    title: "unittest, by its log: T1",
    place: () => pythonTask,
    grader: { work_runs: "together", command: ["python3", "-m", "unittest", "-v", "tests.test_clamp"] },
  },
  { name: "python-together", title: "unittest, together: T1", place: () => pythonTask, grader: { work_runs: "together" } },
  { name: "python-apart", title: "unittest, apart: T2", place: () => pythonTask },
  { ...byPytest, name: "pytest-together", title: "pytest, together: T1", grader: { ...byPytest.grader, work_runs: "together" } },
  { ...byPytest, name: "pytest-apart", title: "pytest, apart: T2" },
  {
    name: "javascript",
    title: "`node:test`, together: T1",
    place: () => "examples/demo/tasks/parse-duration",
    grader: { work_runs: "together" },
  },
  {
    name: "javascript-tap",
    title: "`node --test`, by its TAP: T1",
    place: () => "examples/demo/tasks/parse-duration",
    grader: { work_runs: "together", parser: "tap", command: ["node", "--test", "--test-reporter=tap"] },
  },
  { name: "cases", title: "a command in Python, by `cases`: T3", place: () => "cli/commands/init/skeletons/task-cases" },
  {
    name: "cases-loose",
    title: "a command in Python, by `cases` that look for a text: T3",
    place: () => "cli/commands/init/skeletons/task-cases",
    grader: { cases: [{ args: ["5", "1", "3"], stdout: { contains: "3" } }] },
  },
  { name: "c", title: "tests in C, by their log: T1", place: () => cTask },
  {
    name: "c-cases",
    title: "a command in C, by `cases`: T3",
    place: () => cTask,
    grader: {
      kind: "cases",
      command: ["sh", "-c", 'cc -o /tmp/clamp clamp.c main.c && exec /tmp/clamp "$@"', "clamp"],
      cases: [
        { name: "above", args: ["5", "1", "3"], stdout: "3" },
        { name: "below", args: ["0", "1", "3"], stdout: "1" },
        { name: "usage", args: ["x"], exit: 2 },
      ],
    },
  },
  { name: "javascript-apart", title: "`node:test`, apart: T2", place: () => "examples/demo/tasks/parse-duration" },
  { ...byTape, name: "tape-together", title: "tape, together: T1", grader: { work_runs: "together" } },
  { ...byTape, name: "tape-apart", title: "tape, apart: T2" },
];

/** `no reward`: the grading measured nothing, and the rollout counts nowhere. */
export type HackOutcome = "stopped" | "paid" | "no reward";

/** No change earns a quarter there, and its tests load the work in a process of its own. Its image is made of the base image. */
async function oneOfHarbor(): Promise<string> {
  await ensureBaseImage({ signal: AbortSignal.timeout(120_000) });
  return harborFolder({ one: harborTasks[1]?.files ?? {} });
}

async function taskOf({ place, environment, grader }: HackSetting): Promise<Task> {
  const [loaded] = (await loadTasks(await place())) as [Task];
  const task = { ...loaded, environment: { ...(await onBaseImage(loaded.environment)), ...environment?.() } };
  if (grader === undefined) return task;
  return { ...task, grader: "kind" in grader ? (grader as Task["grader"]) : { ...task.grader, ...grader } };
}

/** The base image has another name in each version. */
async function onBaseImage(environment: Task["environment"]): Promise<Task["environment"]> {
  const { build } = environment;
  if (build?.args.BASE === undefined) return environment;
  const BASE = await ensureBaseImage({ signal: AbortSignal.timeout(120_000) });
  const built = { ...environment, build: { ...build, args: { ...build.args, BASE } } };
  await docker.prepare([built], { signal: AbortSignal.timeout(300_000) });
  return built;
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
