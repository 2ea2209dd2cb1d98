/** Ids and logprobs must be about the same tokens: a list that is one entry off trains every token wrongly, silently. */
import type { TokenIds } from "./prefix.ts";

/**
 * Why `logprobs` cannot belong to `ids`, in words; null where they agree. A missing logprob (null) is no misalignment,
 * but NaN, an infinity or a fraction in place of a token id is.
 */
export function findMisalignment(ids: TokenIds, logprobs: ArrayLike<number | null> | null): string | null {
  for (let at = 0; at < ids.length; at++) {
    const id = ids[at] as number;
    if (!Number.isInteger(id) || id < 0) return `token ${at} has the id ${id}, which is not a natural number`;
  }
  if (logprobs === null) return null;
  if (logprobs.length !== ids.length) return `${ids.length} token ids came with ${logprobs.length} logprobs`;
  for (let at = 0; at < logprobs.length; at++) {
    const logprob = logprobs[at] as number | null;
    if (logprob !== null && !Number.isFinite(logprob)) return `token ${at} has the logprob ${logprob}, which is not finite`;
  }
  return null;
}
