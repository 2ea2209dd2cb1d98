/** `logprobsResult` of a candidate. */
import type { JsonObject } from "../../../base/schema/message.ts";
import type { SampledToken } from "../../../base/schema/sampled-token.ts";

export function logprobsResult(tokens: readonly SampledToken[]): JsonObject {
  return {
    chosenCandidates: tokens.map(({ text, id, logprob }) => candidate(text, logprob, id)),
    ...(tokens.some(({ top }) => top.length > 0) && {
      topCandidates: tokens.map(({ top }) => ({ candidates: top.map(({ text, logprob }) => candidate(text, logprob, null)) })),
    }),
  };
}

/** Null where one is unknown. */
export function averageLogprob(tokens: readonly SampledToken[]): number | null {
  const logprobs = tokens.flatMap(({ logprob }) => logprob ?? []);
  if (tokens.length === 0 || logprobs.length < tokens.length) return null;
  return logprobs.reduce((sum, one) => sum + one, 0) / tokens.length;
}

/** What is unknown is left out, as this API allows. */
function candidate(token: string, logProbability: number | null, tokenId: number | null): JsonObject {
  return { token, ...(tokenId !== null && { tokenId }), ...(logProbability !== null && { logProbability }) };
}
