/** What a known deed in the place of an agent earns in Docker, where its task says that it is graded. */
import { temporaryLayers, type WorkLayer } from "../../base/files/layer.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { Task, TaskStep } from "../../base/schema/task.ts";
import { takenWork } from "../../graders/admission/taken-work.ts";
import { deliveredFiles, deliveredSandbox, freshSandbox, grade, gradeStep } from "../../graders/grade.ts";
import type { GradeContext, StepWork } from "../../graders/grader.ts";
import { removeTests } from "../../graders/harbor.ts";
import { lendSandbox } from "../../graders/shared/lend-sandbox.ts";
import { isShared } from "../../graders/shared/place-to-grade.ts";
import { isLastStep, stepsOfGrader, stepsVerdict } from "../../graders/steps.ts";
import { takeWork } from "../../graders/work/work.ts";
import { docker } from "../../sandboxes/docker.ts";
import { plainRules } from "../../sandboxes/network/open-network.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { beginStep } from "../../sandboxes/set-up.ts";

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
  const delivered = await deliveredFiles(task);
  const workAfter = async (step: number): Promise<WorkLayer> => {
    await deed(sandbox, step);
    await sandbox.freeze();
    return takeWork(sandbox, task, delivered, kept.folder);
  };
  const lent = { ...context, fresh, lend: lendSandbox(sandbox, task, plainRules()) };
  if (task.steps) return await stepsAfter(task.steps, sandbox, workAfter, lent);
  return await grade({ ...lent, work: await workAfter(0) });
}

async function stepsAfter(
  all: TaskStep[],
  sandbox: Sandbox,
  workAfter: (step: number) => Promise<WorkLayer>,
  context: Omit<GradeContext, "work">,
): Promise<Verdict> {
  const { task, signal } = context;
  const spec = stepsOfGrader(task);
  const left: StepWork[] = [];
  const verdicts: Verdict[] = [];
  for (const [index, step] of all.entries()) {
    if (isLastStep(spec, verdicts)) break;
    await sandbox.resume?.();
    if (index > 0) await removeTests(sandbox, signal);
    await beginStep(sandbox, task, step, {}, signal);
    const work = await workAfter(index);
    left.push({ work });
    verdicts.push(await gradeStep({ ...context, work, steps: left }, index));
  }
  return stepsVerdict(spec, verdicts);
}
