/** Whether a call sampled tokens of which the log has neither ids nor a number: they are in no count. */
import type { z } from "zod";
import type { Tried } from "../../schema/session-log.ts";
import type { UncountedReason } from "../../schema/trajectory.ts";
import type { CallHistory } from "./call-history.ts";

export type Uncounted = z.infer<typeof UncountedReason>;

/** null: the call's ids, or the engine's own count, are all that it sampled. */
export function whyUncounted({ finished, tries, damage }: CallHistory): Uncounted | null {
  // What is begun is logged, and what came of it at its end: a process that was killed between the two knew the rest.
  if (finished === null) return damage === null ? "lost_in_flight" : "damaged";
  if (finished.usage.sampled_tokens !== null) return null;
  if (finished.error === null) return finished.sampled_ids === null ? "not_counted" : null;
  return tries.some(mayHaveSampled) ? "broken_off" : null;
}

/**
 * Did the engine take it? A refusal (4xx, 503) comes before anything is sampled, and so does a connection that was never
 * made; behind another 5xx there may be a turn that the engine sampled and could not read.
 */
function mayHaveSampled({ status, error }: Tried): boolean {
  if (status === null) return error?.code !== "engine_unreachable";
  return status < 400 || (status >= 500 && status !== 503);
}
