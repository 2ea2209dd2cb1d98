/** A prompt's ids beside those of an earlier call: what is new of them is parsed and stored, the rest is a reference. */
import { type Policy, samePolicy } from "../../base/schema/policy.ts";
import { IdText, parseIds, type TextHead, textOfIds } from "../../base/tokens/id-text.ts";

/** A list as the log stores it: the head of an earlier call's, and what is new. */
export type Delta<T> = { base_call_id: string | null; base_len: number; new: T[] };

/** A call whose tokens may begin a later prompt. */
export type TokenBase = {
  readonly id: string;
  readonly idText: IdText | null;
  /** How many of its first tokens have their experts on record. Absent: none. */
  readonly routedUntil?: number;
  /** The weights that picked these experts. Absent: unknown. */
  readonly routedBy?: CallWeights | null;
};

/** `model`: the name in the engine's answers. null means unknown, in both fields. */
export type CallWeights = { model: string | null; policy: Policy | null };

/** False if a model or a policy is unknown, because the weights may have changed. */
export function areSameWeights(one: CallWeights, other: CallWeights): boolean {
  const areKnown = one.model !== null && one.policy !== null;
  return areKnown && one.model === other.model && samePolicy(one.policy, other.policy);
}

/** A prompt as the log stores it, and whole. */
export type PromptTokens = { delta: Delta<number>; whole: IdText };

/** Only what no base has is parsed. Throws what asking the engine's event for its ids throws, where they are none. */
export function promptTokens(bases: readonly TokenBase[], prompt: { readonly token_ids: number[]; text?: Buffer }): PromptTokens {
  const text = textOfIds(prompt);
  const best = longestHead(bases, text);
  if (!best) {
    const { token_ids } = prompt;
    return { delta: { base_call_id: null, base_len: 0, new: token_ids }, whole: IdText.ofText(text, token_ids.length) };
  }
  const { call, known, head } = best;
  const tail = text.subarray(Math.min(head.bytes + 1, text.length));
  const fresh = parseIds(tail) ?? prompt.token_ids.slice(head.ids);
  return {
    delta: { base_call_id: call.id, base_len: head.ids, new: fresh },
    whole: known.extendText(head, tail, fresh.length),
  };
}

function longestHead(bases: readonly TokenBase[], text: Buffer): { call: TokenBase; known: IdText; head: TextHead } | null {
  let best: { call: TokenBase; known: IdText; head: TextHead } | null = null;
  for (const call of bases) {
    const known = call.idText;
    const head = known?.commonHead(text);
    if (!known || !head || head.ids <= (best?.head.ids ?? 0)) continue;
    best = { call, known, head };
    // It goes on from all of that call: a longer one is not looked for.
    if (head.ids === known.length) break;
  }
  return best;
}
