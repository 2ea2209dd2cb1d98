/** Decides whether a call asks which tokens its sampling kept, and makes the bytes of what the engine told. */

import { imagesIn } from "../../../base/media/stored-picture.ts";
import type { SupportReason } from "../../../base/schema/log/token-numbers.ts";
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

/** `not_kept`: with this set, the call would hold too many ids. */
export type HeldSet = TokenSupport | "not_kept";

/** Sets of 1000 tokens for 8000 sampled ones. Their file has 32 MiB, and a harness may choose `top_k`. */
export const mostSupportIds = 8 * 2 ** 20;

/** The sets of a call while it is sampled. */
export class HeldSets {
  readonly sets: HeldSet[] = [];
  #ids = 0;

  add(set: HeldSet): void {
    if (typeof set !== "string") this.#ids += set.length;
    this.sets.push(this.#ids > mostSupportIds ? "not_kept" : set);
  }
}

/** Writes the sets as bytes. `told`: the sets that came from the engine. It may have told fewer than there are sampled tokens. */
export function sampledSupport(told: readonly HeldSet[], tokens: number): SampledSupport {
  if (told.length !== tokens || tokens === 0) return { missing: told.length === 0 ? "not_told" : "misfit" };
  const sets: (readonly number[])[] = [];
  let ids = 0;
  for (const set of told) {
    if (typeof set === "string") return { missing: set };
    sets.push(set);
    ids += set.length;
  }
  const bytes = Buffer.alloc((tokens + ids) * 4);
  let at = 0;
  for (const { length } of sets) at = bytes.writeInt32LE(length, at);
  for (const set of sets) for (const id of set) at = bytes.writeInt32LE(id, at);
  return { rows: tokens, ids, bytes };
}
