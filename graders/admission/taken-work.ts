/** What a rollout does with a known deed in the place of an agent: a sandbox as it is delivered, the deed, the work taken out. */
import type { WorkLayer } from "../../files/layer.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/sandbox.ts";
import { conceal } from "../../sandboxes/set-up.ts";
import type { Task } from "../../schema/task.ts";
import { deliveredFiles, deliveredSandbox, type SandboxOwner } from "../grade.ts";
import type { Grader } from "../grader.ts";
import { keepSetUp } from "../set-up-layer.ts";
import { takeWork } from "../work.ts";

export type AttemptOptions = Omit<SandboxOwner, "setUp"> & {
  signal: AbortSignal;
  /** Those that a task may name; the built-in ones where left out. */
  graders?: readonly Grader[];
};

export type TakenWork = { work: WorkLayer; setUp: WorkLayer | null };

/** The work is kept in `folder`; `acted` is what the deed came to. */
export async function takenWork<T>(
  task: Task,
  backend: Pick<SandboxBackend, "create">,
  act: (sandbox: Sandbox) => Promise<T>,
  options: AttemptOptions,
  folder: string,
): Promise<TakenWork & { acted: T }> {
  const { signal } = options;
  await using sandbox = await deliveredSandbox(task, backend, options, signal);
  const delivered = await deliveredFiles(task);
  const setUp = await keepSetUp(sandbox, task, delivered, folder, signal);
  await conceal(sandbox, task, signal);
  const acted = await act(sandbox);
  await sandbox.freeze("reads");
  return { work: await takeWork(sandbox, task, delivered, folder, signal, setUp), setUp, acted };
}
