/** A store of blobs behind HTTP is asked again while it is away, or says that it is busy. */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, messageOf } from "../../base/errors.ts";

/** A request of some megabytes takes seconds on a slow way; one that takes this long is dead, */
const requestMs = 60_000;
/** unless its body is large: a slow way brings so many bytes a second when several nodes share it. */
const slowestBytesPerMs = 250;
const firstPauseMs = 250;
/** A server that was started again is found so soon. */
const longestPauseMs = 5_000;

/** How often it is asked, and how many bytes each request brings. */
export type Patience = { tries: number; bytes: number };

/** A question of a person is not left without an answer for long. */
export const toRead: Patience = { tries: 5, bytes: 0 };
/** About ten minutes, as clients wait for a service: a finished rollout's GPU time is worth the wait. */
export const toWrite = (bytes: number): Patience => ({ tries: 125, bytes });

export function bytesOf({ body }: RequestInit): number {
  return body instanceof Blob ? body.size : Buffer.isBuffer(body) ? body.length : 0;
}

/**
 * Its first answer that is neither 429 nor of 500 or more, or the last one. Throws `store_error`, beginning with `what`, where no
 * server answers, and with the signal's reason.
 */
export async function askAgain(
  what: string,
  { tries, bytes }: Patience,
  send: (signal: AbortSignal) => Promise<Response>,
  stop?: AbortSignal,
): Promise<Response> {
  for (let turn = 1; ; turn += 1) {
    stop?.throwIfAborted();
    const late = AbortSignal.timeout(requestMs + Math.ceil(bytes / slowestBytesPerMs));
    const answer = await send(stop ? AbortSignal.any([stop, late]) : late).catch((error: unknown) => failure(what, error));
    const isAway = answer instanceof AlidadeError || answer.status >= 500 || answer.status === 429;
    if (isAway && turn < tries) {
      if (!(answer instanceof AlidadeError)) await answer.body?.cancel();
      await sleep(Math.min(firstPauseMs * 2 ** (turn - 1), longestPauseMs), undefined, { signal: stop });
      continue;
    }
    if (answer instanceof AlidadeError) throw answer;
    return answer;
  }
}

function failure(what: string, error: unknown): AlidadeError {
  const cause = (error as { cause?: unknown }).cause ?? error;
  return new AlidadeError("store_error", `${what}: ${messageOf(cause).slice(0, 500)}`, { cause: error });
}
