import type { Answered, CallBegun, CallFinished, Decoded, Tried } from "../../base/schema/session-log.ts";

/** All that the log says of one call. What a killed process did not write is null or empty. */
export type CallHistory = {
  call_id: string;
  /** Position in the order in which the session's calls were begun: a parent's rank is always lower. */
  rank: number;
  begun: CallBegun;
  finished: CallFinished | null;
  tries: Tried[];
  /** By parent call id. */
  decoded: Map<string, Decoded>;
  answered: Answered | null;
  /** The turn reached its client in the end, as the first answer or as a replay. */
  complete: boolean;
  /** What of it the log holds no more; null where it is whole. */
  damage: string | null;
};

/** The hash of the tokenizer that its ids belong to; null where it is unknown. */
export function tokenizerOf(call: CallHistory): string | null {
  return call.tries.at(-1)?.fingerprints?.tokenizer ?? null;
}

/** The same while the log is read: its beginning may not have been found. */
export type CallParts = Omit<CallHistory, "call_id" | "rank" | "begun"> & { begun: CallBegun | null };
