import { AlidadeError } from "../../errors.ts";
import type { WorkLayer } from "../../files/layer.ts";
import { plainRules } from "../../sandboxes/network/open-network.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/sandbox.ts";
import type { Task } from "../../schema/task.ts";
import { goldWork } from "../gold.ts";
import { deliveredSandbox } from "../grade.ts";
import type { AttemptOptions } from "./taken-work.ts";

export function hasSolution({ gold_files, gold_patch, gold_script }: Task): boolean {
  return gold_files !== null || gold_patch !== null || gold_script !== undefined;
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
): Promise<{ solution: WorkLayer; seen: T }> {
  if (!hasSolution(task))
    throw new AlidadeError(
      "task_invalid",
      `${task.task_id} has no gold_patch, gold_files or gold_script (solution/solve.sh of Harbor): give one of them: check grades a known solution`,
      { param: "gold_patch" },
    );
  await using sandbox = await deliveredSandbox(task, backend, options, options.signal);
  const seen = await look(sandbox);
  const rules = options.rules ?? plainRules();
  return { solution: (await goldWork(task, sandbox, folder, { signal: options.signal, rules })) as WorkLayer, seen };
}
