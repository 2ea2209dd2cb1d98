/** Ids and logprobs must be about the same tokens: a list that is one entry off trains every token wrongly, silently. */
import type { TokenIds } from "./prefix.ts";

/**
 * No probability is above 1, so no logprob is above 0. A log-softmax is `x - max - log(sum)` with a sum of at least 1, which
 * no rounding brings above 0: vLLM, SGLang and llama.cpp compute it so. What is left for is a kernel with an approximate
 * logarithm, which is wrong by 2^-22 (2.4e-7) near 1: its tokens are as certain as they look, and stay as they were said.
 */
const highestLogprob = 1e-6;

/** Can this be the logarithm of a probability? NaN, an infinity and what is above 0 cannot: it is no measurement. */
export function isLogprob(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value <= highestLogprob;
}

/**
 * Why `logprobs` cannot belong to `ids`, in words; null where they agree. A missing logprob (null) is no misalignment,
 * but what is no logprob is, and so is a fraction in place of a token id.
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
    if (logprob !== null && !isLogprob(logprob))
      return `token ${at} has the logprob ${logprob}, which is ${logprob > 0 && Number.isFinite(logprob) ? "above 0" : "not finite"}`;
  }
  return null;
}
