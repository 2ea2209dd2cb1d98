/** What a rollout does with a known deed in the place of an agent: a sandbox as it is delivered, the deed, the work taken out. */
import { AlidadeError, type ErrorCode } from "../../base/errors.ts";
import type { WorkLayer } from "../../base/files/layer.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/index.ts";
import { beginStep, conceal } from "../../sandboxes/index.ts";
import { deliveredFiles, deliveredSandbox, type SandboxOwner } from "../grade.ts";
import type { Grader, StepWork } from "../grader.ts";
import { keepSetUp } from "../work/set-up-layer.ts";
import { takeWork } from "../work/work.ts";

export type AttemptOptions = Omit<SandboxOwner, "setUp"> & {
  signal: AbortSignal;
  /** Those that a task may name; the built-in ones where left out. */
  graders?: readonly Grader[];
};

/** `steps`: of a task with steps what was left after each; `work` is the last one's. */
export type TakenWork = { work: WorkLayer; steps?: StepWork[]; setUp: WorkLayer | null };

/** The work is kept in `folder`; `acted` is what the deed came to. It is done once a step, and the first time counts. */
export async function takenWork<T>(
  task: Task,
  backend: Pick<SandboxBackend, "create">,
  act: (sandbox: Sandbox, step: number) => Promise<T>,
  options: AttemptOptions,
  folder: string,
): Promise<TakenWork & { acted: T }> {
  const { signal } = options;
  await using sandbox = await deliveredSandbox(task, backend, options, signal);
  const delivered = await deliveredFiles(task);
  const setUp = await keepSetUp(sandbox, task, delivered, folder, signal);
  await conceal(sandbox, task, signal);
  const take = () => takeWork(sandbox, task, delivered, folder, signal, setUp);
  if (task.steps) return { ...(await worksOfSteps(task, sandbox, act, take, signal)), setUp };
  const acted = await act(sandbox, 0);
  await sandbox.freeze("reads");
  return { work: await take(), setUp, acted };
}

async function worksOfSteps<T>(
  task: Task,
  sandbox: Sandbox,
  act: (sandbox: Sandbox, step: number) => Promise<T>,
  take: () => Promise<WorkLayer>,
  signal: AbortSignal,
): Promise<{ work: WorkLayer; steps: StepWork[]; acted: T }> {
  const steps: StepWork[] = [];
  const acted: T[] = [];
  for (const [index, step] of (task.steps ?? []).entries()) {
    if (index > 0) await sandbox.resume?.();
    // What was done before may leave a step nothing to begin with: it and those after it have no work then.
    if (!(await begins(index, beginStep(sandbox, task, step, {}, signal)))) break;
    acted.push(await act(sandbox, index));
    await sandbox.pause?.();
    steps.push({ work: await take() });
  }
  return { work: steps.at(-1)?.work as WorkLayer, steps, acted: acted[0] as T };
}

const cannotBegin: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["sandbox_unavailable", "sandbox_unhealthy"]);

async function begins(index: number, beginning: Promise<void>): Promise<boolean> {
  try {
    await beginning;
    return true;
  } catch (error) {
    if (index > 0 && error instanceof AlidadeError && cannotBegin.has(error.code)) return false;
    throw error;
  }
}
