/** Makes one attempt of the line, from its plan to its record, and reports it. */
import type { RolloutPlan } from "../rollout-plan.ts";
import { type RolloutOutcome, runRollout } from "../run-rollout.ts";
import type { RunSetup } from "../run-setup.ts";
import { brokenBy } from "./broken-by.ts";
import type { LineEnd } from "./rollout-line.ts";

export type MadeAttempt = LineEnd & RolloutOutcome;

/**
 * Returns a failed attempt as an end too. Throws if its record cannot be written. Throws the reason of `drain` if the
 * attempt has not begun.
 */
export async function makeAttempt(setup: RunSetup, plan: RolloutPlan, signal: AbortSignal, drain: AbortSignal): Promise<MadeAttempt> {
  const { record, trajectory } = await runRollout(setup, plan, signal, drain);
  setup.onProgress({ type: "done", record });
  setup.watcher?.attempt({ set_id: plan.set_id ?? setup.run_id, record, stored: Date.now() });
  return { record, trajectory, broken: brokenBy(record) };
}
