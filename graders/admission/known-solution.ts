import { AlidadeError } from "../../base/errors.ts";
import type { WorkLayer } from "../../base/files/layer.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/index.ts";
import { plainRules } from "../../sandboxes/network/index.ts";
import { deliveredSandbox } from "../grade.ts";
import { taskOfStep } from "../steps.ts";
import { goldWork, runGoldScript } from "../work/gold.ts";
import { type AttemptOptions, takenWork } from "./taken-work.ts";

export function hasSolution({ gold_files, gold_patch, gold_script, steps }: Task): boolean {
  if (steps) return steps.every((step) => step.gold_script !== undefined);
  return gold_files !== null || gold_patch !== null || gold_script !== undefined;
}

/** `steps`: of a task with steps what is solved after each; `solution` is the last of them. */
export type KnownSolution = { solution: WorkLayer; steps?: WorkLayer[] };

/** What is put into a sandbox to have the step solved. */
export function solvedAt({ solution, steps }: KnownSolution, step: number): WorkLayer {
  return steps?.[step] ?? solution;
}

/**
 * The task's known solution as a work, kept in `folder`. `look` sees the sandbox before that, as a grader gets it: nothing
 * is concealed there. Throws `task_invalid` where the task has no solution.
 */
export async function knownSolution<T>(
  task: Task,
  backend: Pick<SandboxBackend, "create">,
  options: AttemptOptions,
  folder: string,
  look: (sandbox: Sandbox) => Promise<T>,
): Promise<KnownSolution & { seen: T }> {
  if (!hasSolution(task))
    throw new AlidadeError(
      "task_invalid",
      `${task.task_id} has no gold_patch, gold_files or gold_script (solution/solve.sh of Harbor): give one of them: check grades a known solution`,
      { param: "gold_patch" },
    );
  const rules = options.rules ?? plainRules();
  if (task.steps) return solvedSteps(task, backend, { ...options, rules }, folder, look);
  await using sandbox = await deliveredSandbox(task, backend, options, options.signal);
  const seen = await look(sandbox);
  return { solution: (await goldWork(task, sandbox, folder, { signal: options.signal, rules })) as WorkLayer, seen };
}

async function solvedSteps<T>(
  task: Task,
  backend: Pick<SandboxBackend, "create">,
  options: AttemptOptions,
  folder: string,
  look: (sandbox: Sandbox) => Promise<T>,
): Promise<KnownSolution & { seen: T }> {
  const solve = async (sandbox: Sandbox, index: number): Promise<T | null> => {
    const seen = index === 0 ? await look(sandbox) : null;
    const script = task.steps?.[index]?.gold_script;
    if (script) await runGoldScript(taskOfStep(task, index), script, sandbox, options);
    return seen;
  };
  const { work, steps = [], acted } = await takenWork(task, backend, solve, options, folder);
  return { solution: work, steps: steps.map((step) => step.work), seen: acted as T };
}
