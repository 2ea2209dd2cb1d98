/**
 * The time between two attempts at a rollout. What broke one attempt would break the next at once: an engine that restarts
 * is away while it loads its weights, and all rollouts would spend all attempts on it. No slot is held meanwhile.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorCode } from "../../base/errors.ts";
import type { EnginePool } from "../../proxy/pool/index.ts";
import type { RolloutPlan } from "../rollout-plan.ts";
import type { RunSetup } from "../run-setup.ts";

/** Longer than a hiccup of the container engine. The pause doubles, so a longer outage is probed less often. */
const firstPauseMs = 1_000;
/** How much later than possible an attempt may begin: little beside the minutes that it takes. */
const longestPauseMs = 15_000;
/** Large weights load in a few minutes. An engine that is away for longer does not come back by itself. */
const mostMinutes = 10;

/** What an engine that is away looks like; the others of its failures are answers of one that is there. */
const engineAway: ReadonlySet<ErrorCode> = new Set(["engine_unreachable", "engine_error", "engine_aborted", "engine_paused"]);

/** The parts of a set-up that the pause uses. */
export type AfterFailure = Pick<RunSetup, "pause" | "onProgress"> & { proxy: { pool: Pick<EnginePool, "watch"> } };

const byTheClock: NonNullable<RunSetup["pause"]> = (milliseconds, signal) => sleep(milliseconds, undefined, { signal });

/** `failures`: how many attempts have failed in a row. Resolves early when the run is stopped. */
export async function beforeNextAttempt(
  { proxy, pause = byTheClock, onProgress }: AfterFailure,
  { rollout_id, attempt }: Pick<RolloutPlan, "rollout_id" | "attempt">,
  failure: { code: ErrorCode; failures: number },
  signal: AbortSignal,
): Promise<void> {
  const note = (text: string): void => onProgress({ type: "note", text: `${rollout_id}: ${text}` });
  const isAway = engineAway.has(failure.code);
  let next = Math.min(firstPauseMs * 2 ** (failure.failures - 1), longestPauseMs);
  const when = isAway ? "when an engine answers again" : `in ${next / 1000} s`;
  note(`${failure.code}; attempt ${attempt} begins ${when}`);
  for (let waited = 0; ; next = Math.min(2 * next, longestPauseMs)) {
    await pause(next, signal).catch(() => undefined);
    const began = performance.now();
    if (signal.aborted || !isAway || (await proxy.pool.watch.answers(signal))) return;
    // A generator that hangs takes its time to be found.
    waited += next + performance.now() - began;
    if (waited < mostMinutes * 60_000) continue;
    note(`no engine answers after ${mostMinutes} minutes; attempt ${attempt} begins all the same`);
    return;
  }
}
