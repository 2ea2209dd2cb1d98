/**
 * Submit a rollout, get its outcome. The batch verb (run-tasks.ts) is one client; a listener that takes plans from
 * elsewhere is another.
 *
 *     const rollouts = rolloutsOn({ run_id, owner, proxy, backend, folder, slots: makeSlots(concurrency), onProgress });
 *     const { record, trajectory } = await rollouts.submit(plan, signal);
 */
import { type ErrorCode, errorCodes } from "../base/errors.ts";
import type { RolloutRecord } from "../base/schema/rollout.ts";
import { beforeNextAttempt } from "./before-next-attempt.ts";
import type { RolloutPlan } from "./rollout-plan.ts";
import { type RolloutOutcome, runRollout } from "./run-rollout.ts";
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

/** The next attempt follows, after a pause, while the infrastructure is to blame and attempts are left. */
async function submit(setup: RunSetup, plan: RolloutPlan, signal: AbortSignal, drain?: AbortSignal): Promise<RolloutOutcome> {
  signal.throwIfAborted();
  const waiting = drain ? AbortSignal.any([signal, drain]) : signal;
  for (let next = plan; ; next = { ...next, attempt: next.attempt + 1 }) {
    const outcome = await runRollout(setup, next, signal, drain);
    const { record } = outcome;
    setup.onProgress({ type: "done", record });
    setup.watcher?.attempt({ set_id: plan.set_id ?? setup.run_id, record, stored: Date.now() });
    const code = brokenBy(outcome.record);
    const failures = next.attempt - plan.attempt + 1;
    if (code === null || code === "cancelled" || failures > plan.retries) return outcome;
    if (waiting.aborted || failsAgain.has(code)) return outcome;
    await beforeNextAttempt(setup, { ...next, attempt: next.attempt + 1 }, { code, failures }, waiting);
    if (waiting.aborted) return outcome;
  }
}

/** By a bug of ours, which meets the next draw as well: an agent that finds one must not get another draw by it. */
const notDrawnAgain: ReadonlySet<ErrorCode> = new Set(["internal", "rollout_set_aside"]);

/** An image that cannot be had is missed by the next attempt too: it begins seconds later on the same container engine. */
const failsAgain: ReadonlySet<ErrorCode> = new Set(["image_pull_failed", "image_build_failed"]);

/** What the infrastructure did to the attempt, in its sandbox or in its grading; null where it is done. */
export function brokenBy({ error, verdict }: RolloutRecord): ErrorCode | null {
  const isUngraded = verdict?.status === "infra_error" || verdict?.status === "cancelled";
  const codes = [error?.code, isUngraded ? (verdict.error?.code ?? "cancelled") : undefined] as (ErrorCode | undefined)[];
  return codes.find((code) => code !== undefined && errorCodes[code] === "infrastructure" && !notDrawnAgain.has(code)) ?? null;
}
