/**
 * Which tokens the sampling kept, from vLLM's list of the likeliest ones. With `--logprobs-mode processed_logprobs` its logprobs are
 * those after temperature and cut: tokens that were cut have -9999, and all others add up to 1. `return_tokens_as_token_ids` names
 * them by their ids. `--return-sampling-mask` tells the same, but refuses every request without `top_k`, and answers at one route
 * alone, which reads no tool calls.
 */
import { z } from "zod";
import { isMeasured } from "../chat/alignment.ts";
import { type ListedToken, listedSupport, topKOf } from "../chat/sampling-support.ts";
import type { SampleRequest, TokenSupport } from "../engine.ts";

/** `top`: how many tokens are asked for at each place. `top_k`: the one of the sampling; 0: none. */
export type AskedList = { top: number; top_k: number };

/** Without a `top_k` a set may be of any size. A list of so many tokens is 12 kB a sampled token. */
const withoutTopK = 128;

/** `most`: how many tokens the server lists at most. One more than `top_k` shows that no other token was kept. */
export function askedList({ sampling }: Pick<SampleRequest, "sampling">, most: number): AskedList {
  const top_k = topKOf(sampling);
  return { top: Math.min(most, top_k > 0 ? top_k + 1 : withoutTopK), top_k };
}

export const listFields = ({ top }: AskedList): Record<string, unknown> => ({ top_logprobs: top, return_tokens_as_token_ids: true });

const Listed = z.looseObject({ token: z.string(), logprob: z.number().nullish() });
const Place = z.looseObject({ top_logprobs: z.array(Listed) });

/** `entry`: what `logprobs.content` has of the token. */
export function supportOf(id: number, entry: unknown, { top, top_k }: AskedList): TokenSupport {
  const place = Place.safeParse(entry);
  if (!place.success || place.data.top_logprobs.length > top) return "misfit";
  const listed: ListedToken[] = [];
  for (const { token, logprob } of place.data.top_logprobs) {
    const named = idOf(token);
    if (named === null) return "misfit";
    listed.push({ id: named, logprob: isMeasured(logprob) ? logprob : null });
  }
  return listedSupport(id, listed, top_k);
}

function idOf(token: string): number | null {
  const found = /^token_id:(\d{1,10})$/.exec(token);
  return found === null ? null : Number(found[1]);
}

/** How many tokens servers are asked to list, the most first. 20 is vLLM's default of `--max-logprobs`. */
export const listLengths = [1024, 256, 64, 20] as const;
