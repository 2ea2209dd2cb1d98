/** What SGLang's `/generate` says of the tokens that it was given, from its first one on. */
import { z } from "zod";
import { isLogprob } from "../../base/tokens/alignment.ts";
import type { RankedToken } from "../engine.ts";

/** Logprob, id, and text if it was asked for. */
const Entry = z.tuple([z.number().nullable(), z.number()], z.unknown());

export const InputLogprobs = z.looseObject({
  /** The first one has no logprob: nothing comes before it. */
  input_token_logprobs: z.array(Entry),
  /** The likeliest tokens at the place of each; null at the first one. */
  input_top_logprobs: z.array(z.array(Entry).nullable()).nullish(),
});

/** A token that the server names otherwise has no score, and no candidates: they would be of another place. */
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
