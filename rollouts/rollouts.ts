/**
 * Submit a rollout, get its outcome. A batch (run-tasks.ts) makes many in one line.
 *
 *     const rollouts = rolloutsOn({ run_id, owner, proxy, backend, folder, slots: makeSlots(concurrency), onProgress });
 *     const { record, trajectory } = await rollouts.submit(plan, signal);
 */
import { makePlans } from "./line/make-plans.ts";
import type { RolloutPlan } from "./rollout-plan.ts";
import type { RolloutOutcome } from "./run-rollout.ts";
import type { RunSetup } from "./run-setup.ts";

export interface Rollouts {
  /** How many submitted ones keep the machine busy; more would wait in memory. */
  readonly atOnce: number;
  /**
   * Makes attempts until one is over that the infrastructure did not break, or none is left, and resolves with the last. A
   * rollout that fails is an outcome. Rejects where its record cannot be written, and with the signal's reason where it fired
   * before the first attempt. Once `drain` has fired no attempt follows another, and one that still waits for its place does
   * not begin: then this rejects with the reason of `drain`.
   */
  submit(plan: RolloutPlan, signal: AbortSignal, drain?: AbortSignal): Promise<RolloutOutcome>;
}

export function rolloutsOn(setup: RunSetup): Rollouts {
  return { atOnce: setup.slots.atOnce, submit: (plan, signal, drain) => submit(setup, plan, signal, drain) };
}

async function submit(setup: RunSetup, plan: RolloutPlan, signal: AbortSignal, drain: AbortSignal = signal): Promise<RolloutOutcome> {
  signal.throwIfAborted();
  const outcomes: RolloutOutcome[] = [];
  const onAttempt = (outcome: RolloutOutcome): void => void outcomes.splice(0, 1, outcome);
  await makePlans(setup, { plans: [plan].values(), atOnce: 1, onAttempt }, signal, drain);
  const [last] = outcomes;
  if (last === undefined) throw (signal.aborted ? signal : drain).reason;
  return last;
}
