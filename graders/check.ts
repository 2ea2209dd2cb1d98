/**
 * Checks a task before anything is trained on it. The known solution must earn the full reward every time, and an unchanged
 * workdir must earn less. Both take exactly the path of a rollout's work: delivered into a sandbox, frozen, read from outside,
 * graded afresh. `admission/` has the other checks of `alidade check`.
 */
import { temporaryLayers } from "../base/files/layer.ts";
import type { Verdict } from "../base/schema/rollout.ts";
import type { Task } from "../base/schema/task.ts";
import type { SandboxBackend } from "../sandboxes/index.ts";
import type { NetworkRules } from "../sandboxes/network/index.ts";
import { knownSolution, solvedAt } from "./admission/known-solution.ts";
import { takenWork } from "./admission/taken-work.ts";
import { freshSandbox, grade } from "./grade.ts";
import type { Grader } from "./grader.ts";
import { highestReward } from "./rules/reward-range.ts";
import { placeWork } from "./work/work.ts";

/** `holds`: its reward is what this attempt must earn. */
export type CheckRun = { attempt: "gold" | "no-op"; time: number; holds: boolean; verdict: Verdict };
export type CheckResult = { task_id: string; backend: string; passed: boolean; runs: CheckRun[] };

export type CheckOptions = {
  /** How often each attempt is graded. A flaky test shows only when it runs again. Default 3. */
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
  const gold = await knownSolution(task, backend, options, kept.folder, async () => null);
  const attempts = [
    { attempt: "gold", work: gold },
    { attempt: "no-op", work: null },
  ] as const;
  const runs: CheckRun[] = [];
  const context = { task, signal: options.signal, ...(options.graders && { graders: options.graders }) };
  for (let time = 1; time <= (options.times ?? 3); time++) {
    for (const { attempt, work: known } of attempts) {
      const act = async (sandbox: Parameters<typeof placeWork>[0], step: number) =>
        known === null ? undefined : placeWork(sandbox, task, solvedAt(known, step), {}, options.signal);
      const { setUp, ...works } = await takenWork(task, backend, act, options, kept.folder);
      const verdict = await grade({ ...context, ...works, fresh: freshSandbox(context, backend, { ...options, setUp }) });
      const run: CheckRun = { attempt, time, holds: holds(task, attempt, verdict), verdict };
      runs.push(run);
      options.progress?.(run);
    }
  }
  return { task_id: task.task_id, backend: backend.name, passed: runs.every((run) => run.holds), runs };
}

function holds(task: Task, attempt: CheckRun["attempt"], { reward }: Verdict): boolean {
  const full = highestReward(task);
  return reward !== null && (attempt === "gold" ? reward === full : reward < full);
}
