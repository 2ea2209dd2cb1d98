/**
 * RUN of a task with steps. The harness is started for each step in the same sandbox, and the work after it is graded before
 * the next one begins, for a step below its `min_reward` is the last. While a step is graded all processes of the sandbox stand
 * still; they go on with the next one. Where the agent's own sandbox is lent to the tests (`grading: shared`) they are ended, and
 * the tests are taken away before the next step begins.
 */
import { AlidadeError, asAlidadeError, type ErrorCode, messageOf } from "../base/errors.ts";
import type { WorkLayer } from "../base/files/layer.ts";
import type { Verdict } from "../base/schema/rollout.ts";
import type { Task, TaskStep } from "../base/schema/task.ts";
import type { GradeContext, StepWork } from "../graders/index.ts";
import { gradeStep, isLastStep, removeTests, stepsOfGrader, stepsVerdict, taskOfStep } from "../graders/index.ts";
import type { HarnessLaunch } from "../harnesses/index.ts";
import { beginStep } from "../sandboxes/index.ts";
import type { PreparedRollout } from "./prepare.ts";
import type { RolloutPlan } from "./rollout-plan.ts";
import { type HarnessRun, runHarness } from "./run-harness.ts";
import type { RunSetup } from "./run-setup.ts";

/** One step that the agent ended. `left`: null where the infrastructure failed, or no call was made. */
export type StepRun = { name: string; run: HarnessRun; left: StepWork | null };

export type SteppedRun = {
  steps: StepRun[];
  /** null where there is nothing to grade. */
  verdict: Verdict | null;
  /** What the policy did to its sandbox, after which no step could follow. */
  failure: AlidadeError | null;
};

export type StepsOrder = {
  setup: RunSetup;
  plan: RolloutPlan;
  prepared: PreparedRollout;
  /** All that grading takes beside the work, which each step has of its own. */
  context: Omit<GradeContext, "work" | "steps">;
  /** Reads what the agent left, while nothing of it runs. The services do. `end`: ends them, because no step follows. */
  take: (step: Task, end: boolean) => Promise<StepWork>;
  /** The times of the attempt. `ran` and `post` are those of the last step. */
  times: Record<string, number>;
};

export async function runSteps(order: StepsOrder, signal: AbortSignal): Promise<SteppedRun> {
  const spec = stepsOfGrader(order.plan.task);
  const steps: StepRun[] = [];
  const verdicts: Verdict[] = [];
  const gradeNext = () => gradeStep({ ...order.context, work: noWork, steps: steps.flatMap(({ left }) => left ?? []) }, verdicts.length);
  try {
    while (!isLastStep(spec, verdicts)) {
      const step = await endedStep(order, verdicts.length, signal);
      steps.push(step);
      order.times.ran = Date.now();
      if (step.left === null) return { steps, verdict: null, failure: null };
      verdicts.push(
        await order.setup.slots.post.run(signal, () => {
          order.times.post = Date.now();
          return gradeNext();
        }),
      );
    }
    return { steps, verdict: stepsVerdict(spec, verdicts), failure: null };
  } catch (error) {
    const failure = asAlidadeError(error, "sandbox_error");
    if (signal.aborted || failure.owner !== "policy") throw error;
    // It and those that would follow earn what no work earns.
    while (!isLastStep(spec, verdicts)) verdicts.push(await gradeNext());
    return { steps, verdict: stepsVerdict(spec, verdicts), failure };
  }
}

function isLent({ context }: StepsOrder): boolean {
  return context.lend !== undefined;
}

/** A step without a work is graded as none. */
const noWork: WorkLayer = { file: "", sha256: "", bytes: 0, changes: [] };

/** Throws what the policy did to its sandbox. */
async function endedStep(order: StepsOrder, index: number, signal: AbortSignal): Promise<StepRun> {
  const { setup, plan, prepared } = order;
  const step = (plan.task.steps ?? [])[index] as TaskStep;
  // A step that is cut has no end.
  delete order.times.ran;
  delete order.times.post;
  const launch = index === 0 ? prepared.launch : await startAgain(order, step, signal);
  const task = taskOfStep(plan.task, index);
  const run = await runHarness(setup, { ...plan, task }, { ...prepared, launch }, signal);
  const isStuck = index > 0 && run.infrastructure?.code === ("sandbox_error" satisfies ErrorCode);
  if (isStuck && (await isWell(order))) throw unusable(step, run.infrastructure?.message ?? "");
  // Without a call nothing is the policy's doing, as in a task without steps.
  const isGraded = run.infrastructure === null && prepared.session.callCount > 0;
  return { name: step.name, run, left: isGraded ? await leftStanding(order, task, index) : null };
}

async function startAgain(order: StepsOrder, step: TaskStep, signal: AbortSignal): Promise<HarnessLaunch> {
  const { plan, prepared } = order;
  await prepared.sandbox.resume?.();
  if (isLent(order)) {
    // Before the network and the model are open again, for what lies in the sandbox could send them out.
    await asItWasLeft(order, step, signal, () => removeTests(prepared.sandbox, signal));
    await prepared.reopenNetwork();
  }
  prepared.session.allowCalls();
  prepared.tools?.goOn();
  return asItWasLeft(order, step, signal, async () => {
    await beginStep(prepared.sandbox, plan.task, step, prepared.network.env, signal);
    return prepared.launchFor(step.instruction, signal);
  });
}

/** What fails in the sandbox as the agent left it is the agent's, where sandboxes of ours are well. */
async function asItWasLeft<T>(order: StepsOrder, step: TaskStep, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    throw (await isWell(order)) ? unusable(step, messageOf(error)) : error;
  }
}

/** Does a sandbox of ours run a command now? Then what fails in the agent's is what the agent left there. */
async function isWell({ context }: StepsOrder): Promise<boolean> {
  try {
    await using fresh = await context.fresh();
    return (await fresh.exec(["true"])).exit_code === 0;
  } catch {
    return false;
  }
}

function unusable({ name }: TaskStep, why: string): AlidadeError {
  return new AlidadeError("harness_failed", `the step ${name} could not begin in the sandbox as the agent left it: ${why}`);
}

/**
 * The agent stands still first, then its services are asked and read, and then they stand still too. In a sandbox that is lent
 * the agent's processes end, and the services go on. Its own network is closed meanwhile: the tests have theirs.
 */
async function leftStanding(order: StepsOrder, task: Task, index: number): Promise<StepWork> {
  const { plan, prepared, take } = order;
  const { sandbox, network } = prepared;
  if (isLent(order)) {
    await sandbox.freeze();
    await network[Symbol.asyncDispose]();
    return take(task, false);
  }
  if (!sandbox.pause)
    throw new AlidadeError("task_invalid", "a task of several steps wants a sandbox whose processes can stand still: --sandbox docker");
  await sandbox.pause("agent");
  const left = await take(task, index + 1 === plan.task.steps?.length);
  await sandbox.pause();
  return left;
}
