/** Whether a call sampled tokens of which the log has neither ids nor a number: they are in no count. */
import type { z } from "zod";
import type { CallFinished, Tried } from "../../base/schema/session-log.ts";
import type { UncountedReason } from "../../base/schema/trajectory.ts";
import type { CallHistory } from "./call-history.ts";

export type Uncounted = z.infer<typeof UncountedReason>;

/** null: the call's ids, or the engine's own count, are all that it sampled. */
export function whyUncounted(call: CallHistory): Uncounted | null {
  const { finished, tries, damage } = call;
  // What is begun is logged, and what came of it at its end: a process that was killed between the two knew the rest.
  if (finished === null) return damage === null ? "lost_in_flight" : "damaged";
  return (
    whyLastUncounted(finished, tries.at(-1)) ??
    (resampledTries(call) > 0 ? "resampled" : (finished.parts ?? []).length > 1 ? "interrupted" : null)
  );
}

/** Tries that another one followed though the engine may have sampled for them: a bias against samples that are lost more often, the long ones. */
export function resampledTries({ tries, finished }: CallHistory): number {
  const kept = new Set((finished?.parts ?? []).map((part) => part.try));
  return tries.slice(0, -1).filter((tried) => !kept.has(tried.try) && mayHaveSampled(tried)).length;
}

function whyLastUncounted({ usage, error, sampled_ids }: CallFinished, last: Tried | undefined): Uncounted | null {
  if (usage.sampled_tokens !== null) return null;
  if (error === null) return sampled_ids === null ? "not_counted" : null;
  return last !== undefined && mayHaveSampled(last) ? "broken_off" : null;
}

/**
 * Older releases did not say it. They took a refusal (4xx, 503) and a connection that was never made for proof that nothing
 * was sampled; behind another 5xx there may be a turn that the engine sampled and could not read.
 */
function mayHaveSampled({ status, error, first_token, may_have_sampled }: Tried): boolean {
  if (first_token !== null) return true;
  if (may_have_sampled !== undefined) return may_have_sampled;
  if (status === null) return error?.code !== "engine_unreachable";
  return status < 400 || (status >= 500 && status !== 503);
}
