/** Decides whether a call asks which tokens its sampling kept, and makes the bytes of what the engine told. */

import { imagesIn } from "../../../base/media/stored-picture.ts";
import type { SupportReason } from "../../../base/schema/session-log.ts";
import { type EngineFacts, isCut, type SampleRequest, type TokenSupport, topKOf } from "../../../engines/index.ts";

/** `missing`: why the kept tokens are unknown. */
export type SampledSupport = { rows: number; ids: number; bytes: Buffer } | { missing: SupportReason };

export type AskedSampling = Pick<SampleRequest, "sampling" | "prompt" | "messages" | "live" | "token_logprobs">;

/** Returns null if the call asks for them; "uncut": its sampling leaves out no token. */
export function whySupportUnasked(request: AskedSampling, facts: EngineFacts, isUnderGrammar: boolean): SupportReason | "uncut" | null {
  const { sampling, prompt, messages, live, token_logprobs } = request;
  if (!isCut(sampling)) return "uncut";
  if (!facts.support) return "not_told";
  const { most, bounded } = facts.support;
  const isOther = isUnderGrammar || prompt !== undefined || token_logprobs !== undefined || imagesIn(messages).length > 0;
  // An answer in one piece brings experts, and shows tool calls as the model wrote them only by the texts of its tokens.
  const isWhole = facts.routing === "not_live" && live !== true;
  if (isOther || isWhole || sampling.temperature === 0) return "not_asked";
  const top_k = topKOf(sampling);
  if (bounded && (top_k === 0 || top_k > most)) return "unbounded";
  return top_k > most ? "cut_short" : null;
}

/** `told`: one for each sampled token, as far as the engine told it. */
export function sampledSupport(told: readonly TokenSupport[], tokens: number): SampledSupport {
  if (told.length !== tokens || tokens === 0) return { missing: told.length === 0 ? "not_told" : "misfit" };
  const sets: (readonly number[])[] = [];
  for (const set of told) {
    if (typeof set === "string") return { missing: set };
    sets.push(set);
  }
  const numbers = [...sets.map(({ length }) => length), ...sets.flat()];
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [at, number] of numbers.entries()) bytes.writeInt32LE(number, at * 4);
  return { rows: tokens, ids: numbers.length - tokens, bytes };
}
