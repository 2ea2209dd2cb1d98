/**
 * Checks a task before anything is trained on it: the gold patch must get 1 and no change must get 0, every time, on
 * exactly the path that a rollout's work takes (delivered into a sandbox, frozen, read from outside, graded afresh).
 */
import { AlidadeError } from "../errors.ts";
import { temporaryLayers, type WorkLayer } from "../files/layer.ts";
import { type NetworkRules, plainRules } from "../sandboxes/network/open-network.ts";
import type { SandboxBackend } from "../sandboxes/sandbox.ts";
import { conceal } from "../sandboxes/set-up.ts";
import type { Verdict } from "../schema/rollout.ts";
import type { Task } from "../schema/task.ts";
import { goldWork } from "./gold.ts";
import { deliveredFiles, deliveredSandbox, freshSandbox, grade } from "./grade.ts";
import type { Grader } from "./grader.ts";
import { keepSetUp } from "./set-up-layer.ts";
import { placeWork, takeWork } from "./work.ts";

export type CheckRun = { attempt: "gold" | "no-op"; time: number; expected: number; verdict: Verdict };
export type CheckResult = { task_id: string; backend: string; passed: boolean; runs: CheckRun[] };

export type CheckOptions = {
  /** How often each: a test that varies shows itself only when it is run again. Default 3. */
  times?: number;
  signal: AbortSignal;
  /** Labels of the sandboxes, for the reaper. */
  run_id: string;
  owner: string;
  /** What the task's set-up and grading may reach; plain rules where left out. */
  rules?: NetworkRules;
  progress?: (run: CheckRun) => void;
  /** Those that a task may name; the built-in ones where left out. */
  graders?: readonly Grader[];
};

export async function checkTask(task: Task, backend: SandboxBackend, options: CheckOptions): Promise<CheckResult> {
  await using kept = await temporaryLayers();
  const gold = await knownSolution(task, backend, options, kept.folder);
  const attempts = [
    { attempt: "gold", expected: 1, work: gold },
    { attempt: "no-op", expected: 0, work: null },
  ] as const;
  const runs: CheckRun[] = [];
  for (let time = 1; time <= (options.times ?? 3); time++) {
    for (const { attempt, expected, work } of attempts) {
      const verdict = await attemptTask(task, backend, work, options, kept.folder);
      const run: CheckRun = { attempt, time, expected, verdict };
      runs.push(run);
      options.progress?.(run);
    }
  }
  return { task_id: task.task_id, backend: backend.name, passed: runs.every((run) => run.verdict.reward === run.expected), runs };
}

async function knownSolution(task: Task, backend: SandboxBackend, options: CheckOptions, folder: string): Promise<WorkLayer> {
  if (task.gold_files === null && task.gold_patch === null && !task.gold_script)
    throw new AlidadeError(
      "task_invalid",
      `${task.task_id} has no gold_patch, gold_files or gold_script (solution/solve.sh of Harbor): give one of them: check grades a known solution`,
      { param: "gold_patch" },
    );
  await using sandbox = await deliveredSandbox(task, backend, options, options.signal);
  return (await goldWork(task, sandbox, folder, { signal: options.signal, rules: options.rules ?? plainRules() })) as WorkLayer;
}

/** What a rollout does, with a known work in the place of an agent's; null: it does nothing. */
async function attemptTask(
  task: Task,
  backend: SandboxBackend,
  known: WorkLayer | null,
  options: CheckOptions,
  folder: string,
): Promise<Verdict> {
  const context = { task, signal: options.signal, ...(options.graders && { graders: options.graders }) };
  const { work, setUp } = await takenWork(task, backend, known, options, folder);
  return grade({ ...context, work, fresh: freshSandbox(context, backend, { ...options, setUp }) });
}

async function takenWork(
  task: Task,
  backend: SandboxBackend,
  known: WorkLayer | null,
  options: CheckOptions,
  folder: string,
): Promise<{ work: WorkLayer; setUp: WorkLayer | null }> {
  await using sandbox = await deliveredSandbox(task, backend, options, options.signal);
  const delivered = await deliveredFiles(task);
  const setUp = await keepSetUp(sandbox, task, delivered, folder, options.signal);
  await conceal(sandbox, task, options.signal);
  if (known !== null) await placeWork(sandbox, task, known, {}, options.signal);
  await sandbox.freeze("reads");
  return { work: await takeWork(sandbox, task, delivered, folder, options.signal, setUp), setUp };
}
