/**
 * Checks a task before anything is trained on it: the gold patch must get 1 and no change must get 0, every time, on
 * exactly the path that a rollout's work takes (delivered into a sandbox, frozen, read from outside, graded afresh).
 */
import { AlidadeError } from "../errors.ts";
import type { TreeFile } from "../files/file-tree.ts";
import { readFolder } from "../files/file-tree.ts";
import type { SandboxBackend } from "../sandboxes/sandbox.ts";
import { specOf } from "../sandboxes/task-spec.ts";
import type { Verdict } from "../schema/rollout.ts";
import type { Task } from "../schema/task.ts";
import { goldFiles } from "./gold.ts";
import { freshSandbox, grade } from "./grade.ts";
import type { Grader } from "./grader.ts";
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
  progress?: (run: CheckRun) => void;
  /** Those that a task may name; the built-in ones where left out. */
  graders?: readonly Grader[];
};

export async function checkTask(task: Task, backend: SandboxBackend, options: CheckOptions): Promise<CheckResult> {
  const base = await baseFiles(task);
  const attempts = [
    { attempt: "gold", expected: 1, files: await knownSolution(task, base) },
    { attempt: "no-op", expected: 0, files: base },
  ] as const;
  const runs: CheckRun[] = [];
  for (let time = 1; time <= (options.times ?? 3); time++) {
    for (const { attempt, expected, files } of attempts) {
      const verdict = await attemptTask(task, backend, base, files, options);
      const run: CheckRun = { attempt, time, expected, verdict };
      runs.push(run);
      options.progress?.(run);
    }
  }
  return { task_id: task.task_id, backend: backend.name, passed: runs.every((run) => run.verdict.reward === run.expected), runs };
}

/** The workdir as it is delivered to an agent. */
export async function baseFiles(task: Task): Promise<TreeFile[]> {
  return task.environment.files === null ? [] : readFolder(task.environment.files);
}

async function knownSolution(task: Task, base: TreeFile[]): Promise<TreeFile[]> {
  const gold = await goldFiles(task, base);
  if (gold !== null) return gold;
  throw new AlidadeError(
    "task_invalid",
    `${task.task_id} has neither gold_patch nor gold_files: give one of them in its task.yaml: check grades a known solution`,
    { param: "gold_patch" },
  );
}

/** What a rollout does, with the files of an attempt in the place of an agent's work. */
async function attemptTask(
  task: Task,
  backend: SandboxBackend,
  base: TreeFile[],
  files: TreeFile[],
  options: CheckOptions,
): Promise<Verdict> {
  const { signal } = options;
  const context = { task, signal, ...(options.graders && { graders: options.graders }) };
  const taken = await workOf(task, backend, base, files, options);
  return grade({ ...context, ...taken, fresh: freshSandbox(context, backend, options) });
}

async function workOf(task: Task, backend: SandboxBackend, base: TreeFile[], files: TreeFile[], options: CheckOptions) {
  await using sandbox = await backend.create(specOf(task, options), options.signal);
  await sandbox.writeFiles(base);
  const delivered = await takeWork(sandbox, task);
  await placeWork(sandbox, base, files, options.signal);
  await sandbox.freeze();
  return { base: delivered, work: await takeWork(sandbox, task) };
}
