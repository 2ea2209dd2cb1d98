/** The rules for another try of a call that failed: whether it may follow, and how long it waits. */
import type { AlidadeError, ErrorCode } from "../../base/errors.ts";
import type { Tried } from "../../base/schema/session-log.ts";
import { LostAnswer } from "../../engines/index.ts";

/**
 * A second try happens only after faults that cannot depend on the sample, and at most twice: a retry after sampling would
 * bias the samples. `resample_lost` of an engine takes that bias, and the record counts it.
 */
const maxTries = 3;
/** A full engine often has room again within seconds. */
const firstWaitMs = 200;
/** A longer wait is left to the client, which knows how to wait. */
export const longestWaitMs = 2_000;

/** No status came from the engine. */
export function hasNoAnswer(failure: AlidadeError): boolean {
  return failure.code === "engine_unreachable" || failure instanceof LostAnswer;
}

/** Codes of refusals before sampling, unless the answer says otherwise. */
const neverSampled: readonly ErrorCode[] = ["engine_unreachable", "request_invalid", "context_length_exceeded", "model_unknown"];

/** Unless something proves that nothing was sampled, it may have been. */
export function mayHaveSampled(failure: AlidadeError, { status }: Tried): boolean {
  return status !== null || !(failure.sampledNothing ?? neverSampled.includes(failure.code));
}

/**
 * True if a try is left, and the call failed before the engine took the request: such a fault cannot depend on the sample.
 * `resampleLost`: also if it was taken and its answer was lost.
 */
export function mayTryAgain(failure: AlidadeError, tried: Tried, count: number, resampleLost: boolean): boolean {
  if (count >= maxTries || tried.first_token !== null) return false;
  if (tried.may_have_sampled === true) return resampleLost && failure instanceof LostAnswer;
  return failure.code === "engine_unreachable" || (failure.code === "engine_error" && (tried.status === 429 || tried.status === 503));
}

/** The wait that the engine asked for, else a growing one. Where no connection was made the next try starts at once. */
export function beforeNextTryMs(failure: AlidadeError, tries: number): number {
  if (failure.retryAfterSeconds !== null) return failure.retryAfterSeconds * 1000;
  return failure.code === "engine_unreachable" && tries === 1 ? 0 : firstWaitMs * 2 ** (tries - 1);
}
