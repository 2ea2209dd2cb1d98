/** What a known deed in the place of an agent earns in Docker, where its task says that it is graded. */
import { temporaryLayers } from "../../files/layer.ts";
import { takenWork } from "../../graders/admission/taken-work.ts";
import { deliveredFiles, deliveredSandbox, freshSandbox, grade } from "../../graders/grade.ts";
import { lendSandbox } from "../../graders/shared/lend-sandbox.ts";
import { isShared } from "../../graders/shared/place-to-grade.ts";
import { takeWork } from "../../graders/work.ts";
import { docker } from "../../sandboxes/docker.ts";
import { plainRules } from "../../sandboxes/network/open-network.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Verdict } from "../../schema/rollout.ts";
import type { Task } from "../../schema/task.ts";

type Deed = (sandbox: Sandbox, step: number) => Promise<unknown>;
type Owner = { run_id: string; owner: string };

/** `deed` is done once a step. */
export async function gradedAfter(task: Task, deed: Deed, owner: Owner, signal: AbortSignal): Promise<Verdict> {
  await using kept = await temporaryLayers();
  const context = { task, signal };
  const fresh = freshSandbox(context, docker, owner);
  if (!isShared(task)) {
    const { acted: _, ...taken } = await takenWork(task, docker, deed, { ...owner, signal }, kept.folder);
    return await grade({ ...context, ...taken, fresh: freshSandbox(context, docker, { ...owner, setUp: taken.setUp }) });
  }
  await using sandbox = await deliveredSandbox(task, docker, owner, signal);
  await deed(sandbox, 0);
  await sandbox.freeze();
  const work = await takeWork(sandbox, task, await deliveredFiles(task), kept.folder);
  return await grade({ ...context, work, fresh, lend: lendSandbox(sandbox, task, plainRules()) });
}
