/** What a rollout does where a task is graded in the agent's own sandbox, with a known deed in the place of an agent. */

import type { Verdict } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/index.ts";
import { conceal } from "../../sandboxes/index.ts";
import { plainRules } from "../../sandboxes/network/index.ts";
import { deliveredFiles, deliveredSandbox, freshSandbox, grade } from "../grade.ts";
import type { GraderSampler } from "../grader.ts";
import { lendSandbox } from "../shared/lend-sandbox.ts";
import { keepsProcesses } from "../shared/place-to-grade.ts";
import { standStill } from "../shared/stand-still.ts";
import { keepSetUp } from "../work/set-up-layer.ts";
import { takeWork } from "../work/work.ts";
import type { AttemptOptions } from "./taken-work.ts";

/** Done in a sandbox as an agent gets it. */
export type Deed = (sandbox: Sandbox) => Promise<unknown>;

/** Each grading has a sandbox of its own, for the one before it has left its tests there. The work is kept in `folder`. */
export async function gradeThere(
  task: Task,
  backend: Pick<SandboxBackend, "create">,
  deed: Deed,
  options: AttemptOptions & { sampler?: GraderSampler | undefined },
  folder: string,
): Promise<Verdict> {
  const { signal, graders, sampler } = options;
  const rules = options.rules ?? plainRules();
  await using sandbox = await deliveredSandbox(task, backend, { ...options, rules }, signal);
  const delivered = await deliveredFiles(task);
  const setUp = await keepSetUp(sandbox, task, delivered, folder, signal);
  await conceal(sandbox, task, signal);
  await deed(sandbox);
  await (keepsProcesses(task) ? standStill(sandbox) : sandbox.freeze());
  const work = await takeWork(sandbox, task, delivered, folder, signal, setUp);
  const context = { task, signal, ...(graders && { graders }), ...(sampler && { sampler }) };
  const fresh = freshSandbox(context, backend, { ...options, rules, setUp });
  return await grade({ ...context, work, fresh, lend: lendSandbox(sandbox, task, rules) });
}
