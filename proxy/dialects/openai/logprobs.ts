/** Logprobs as chat and responses write them: of chosen tokens, and of the likeliest others. */
import { z } from "zod";
import { maxAlternatives, type SampledToken } from "../../../base/schema/sampled-token.ts";

/** The field of a body that says how many of the likeliest others an answer lists. */
export const Alternatives = z.number().int().min(0).max(maxAlternatives).nullish();

type ShownText = { token: string; logprob: number | null; bytes: number[] | null };
export type ShownToken = ShownText & { top_logprobs: ShownText[] };

/** Ids have no place there. What was not measured is null. */
export function shownToken({ top, ...token }: SampledToken): ShownToken {
  return { ...shown(token), top_logprobs: top.map(shown) };
}

function shown({ text, logprob, bytes }: Pick<SampledToken, "text" | "logprob" | "bytes">): ShownText {
  return { token: text, logprob, bytes };
}
