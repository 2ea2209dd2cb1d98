/** Reads the logprobs that SGLang's `/generate` returns for its input tokens, from the first one on. */
import { z } from "zod";
import { isLogprob } from "../../base/tokens/alignment.ts";
import type { RankedToken } from "../engine.ts";

/** Logprob, id, and text if it was asked for. */
const Entry = z.tuple([z.number().nullable(), z.number()], z.unknown());

export const InputLogprobs = z.looseObject({
  /** The first token has no logprob, because no token comes before it. */
  input_token_logprobs: z.array(Entry),
  /** The likeliest tokens at each place; null at the first one. */
  input_top_logprobs: z.array(z.array(Entry).nullable()).nullish(),
});

/** If the server names another id, the token gets no score and no candidates: they belong to another place. */
export function toRankedTokens(
  tokenIds: readonly number[],
  { input_token_logprobs: own, input_top_logprobs: likeliest }: z.infer<typeof InputLogprobs>,
  top: number,
): RankedToken[] {
  return tokenIds.map((id, at) => {
    const [logprob = null, named] = own[at] ?? [];
    if (named !== id) return { logprob: null, top: { ids: [], logprobs: [] } };
    const ranked = (likeliest?.[at] ?? [])
      .flatMap(([each, candidate]) => (isLogprob(each) ? [{ each, candidate }] : []))
      .sort((one, other) => other.each - one.each)
      .slice(0, top);
    return { logprob, top: { ids: ranked.map(({ candidate }) => candidate), logprobs: ranked.map(({ each }) => each) } };
  });
}
