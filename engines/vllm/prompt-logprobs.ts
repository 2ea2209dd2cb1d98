/** The `prompt_logprobs` of vLLM's answers: for each token of a prompt its logprob and those of the likeliest ones, in any order. */
import { z } from "zod";
import { isLogprob } from "../../base/tokens/alignment.ts";
import type { RankedToken } from "../engine.ts";

const PromptLogprob = z.looseObject({ logprob: z.number().nullish(), rank: z.number().nullish() });

/** By token id; null for the first token. */
export const PromptLogprobs = z.array(z.record(z.string(), PromptLogprob).nullable()).nullish();

type Entries = NonNullable<z.infer<typeof PromptLogprobs>>[number] | undefined;

/** `top`: how many likeliest ones were asked for. The token itself may stand beside them as one more. */
export function toRankedTokens(tokenIds: readonly number[], answered: z.infer<typeof PromptLogprobs>, top: number): RankedToken[] {
  return tokenIds.map((id, at) => {
    const entries = answered?.[at];
    return { logprob: entries?.[id]?.logprob ?? null, top: likeliest(entries, top) };
  });
}

function likeliest(entries: Entries, top: number): RankedToken["top"] {
  if (top === 0 || !entries) return { ids: [], logprobs: [] };
  const ranked = Object.entries(entries)
    .flatMap(([id, { logprob, rank }]) => (isLogprob(logprob) ? [{ id: Number(id), logprob, rank: rank ?? Number.POSITIVE_INFINITY }] : []))
    .sort((one, other) => other.logprob - one.logprob || one.rank - other.rank)
    .slice(0, top);
  return { ids: ranked.map(({ id }) => id), logprobs: ranked.map(({ logprob }) => logprob) };
}
