/** What every dialect's error answer has in common: our code in a header, and the truth about retrying. */
import type { AlidadeError, ErrorCode } from "../../base/errors.ts";

/** Codes that end a session: no retry, and no second try by the harness, can change them. */
const final: readonly ErrorCode[] = ["session_sealed", "budget_spent", "policy_gone"];

/** A weight update takes seconds to minutes; a client that comes back sooner only waits at the gate again. */
const pausedRetryAfterSeconds = 5;

/** Codex retries a 429 only with a `retry-after`. A full engine has room again as soon as one answer is done. */
const busyRetryAfterSeconds = 1;

export function isFinal(error: AlidadeError): boolean {
  return final.includes(error.code);
}

/** `x-should-retry` is read by both vendors' SDKs, before the status. Only what the infrastructure did is worth a retry. */
export function errorHeaders(error: AlidadeError): Record<string, string> {
  const retryable = isRetryable(error);
  const seconds = comeBackAfterSeconds(error);
  return {
    "x-alidade-error": error.code,
    ...(!retryable && { "x-should-retry": "false" }),
    ...(seconds !== null && { "retry-after": String(seconds) }),
  };
}

/** Whole seconds after which a client should ask again: the engine's own word, else ours; null where it should not, or at once. */
export function comeBackAfterSeconds(error: AlidadeError): number | null {
  if (!isRetryable(error)) return null;
  if (error.retryAfterSeconds !== null) return Math.ceil(error.retryAfterSeconds);
  if (error.code === "engine_paused") return pausedRetryAfterSeconds;
  return error.status === 429 ? busyRetryAfterSeconds : null;
}

function isRetryable(error: AlidadeError): boolean {
  return !isFinal(error) && (error.owner === "infrastructure" || error.status === 429);
}
