/** One attempt of the line, from its plan to its record, and those who hear of it. */
import type { RolloutPlan } from "../rollout-plan.ts";
import { type RolloutOutcome, runRollout } from "../run-rollout.ts";
import type { RunSetup } from "../run-setup.ts";
import { brokenBy } from "./broken-by.ts";
import type { LineEnd } from "./rollout-line.ts";

export type MadeAttempt = LineEnd & RolloutOutcome;

/** What fails is an end too. Throws where its record cannot be written, and the reason of `drain` where it has not begun. */
export async function makeAttempt(setup: RunSetup, plan: RolloutPlan, signal: AbortSignal, drain: AbortSignal): Promise<MadeAttempt> {
  const { record, trajectory } = await runRollout(setup, plan, signal, drain);
  setup.onProgress({ type: "done", record });
  setup.watcher?.attempt({ set_id: plan.set_id ?? setup.run_id, record, stored: Date.now() });
  return { record, trajectory, broken: brokenBy(record) };
}
