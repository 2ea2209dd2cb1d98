/** Logprobs of a text completion: a list for each field, and no bytes. */
import type { SampledToken } from "../../../base/schema/sampled-token.ts";

/** `from`: where the first token stands in the text that all tokens spell. */
export function toLogprobs(tokens: readonly SampledToken[], from: number): Record<string, unknown> {
  let offset = from;
  const text_offset = tokens.map(({ text }) => {
    offset += text.length;
    return offset - text.length;
  });
  return {
    tokens: tokens.map(({ text }) => text),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.some(({ top }) => top.length > 0) ? tokens.map(alternatives) : null,
    text_offset,
  };
}

/** By their texts, as this wire has them: of two that read alike the likelier one stays. The chosen one is among them. */
function alternatives({ text, logprob, top }: SampledToken): Record<string, number> {
  const listed = [...top, ...(logprob === null ? [] : [{ text, logprob }])];
  const ascending = listed.toSorted((one, other) => one.logprob - other.logprob);
  return Object.fromEntries(ascending.map((one) => [one.text, one.logprob]));
}
