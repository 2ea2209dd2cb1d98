/**
 * How much of an interrupted sample goes on. The engine's parser begins anew with the second request, so it must have been at
 * rest where the first one is cut: all tokens up to there were said as text or as a thought, and no tool call had begun. What
 * came behind that place is dropped, and the record says how much that was.
 */
import type { Part } from "../../../base/schema/message.ts";
import type { SampledToken } from "../../../base/schema/sampled-token.ts";
import type { EngineLease } from "../../pool/engine-lease.ts";
import type { PromptTokens } from "../../session/prompt-tokens.ts";
import type { HeldSet } from "../numbers/sampled-support.ts";

/** After so many ids the answer had said so many characters, and no call. */
export type Mark = { ids: number; reasoning: number; text: number };

/** What the next request goes on from. */
export type KeptTokens = {
  /** That of the first request. */
  prompt: PromptTokens;
  ids: number[];
  logprobs: (number | null)[];
  tokens: SampledToken[];
  /** What the sampling kept at their places, as far as the engine told it. */
  support: HeldSet[];
  parts: Part[];
};

/** What of a sample may be kept. */
export type Keepable = {
  readonly marks: readonly Mark[];
  /** The ids up to a mark. */
  idsUntil(mark: Mark): number[];
  /** What they said. */
  saidUntil(mark: Mark): SaidSoFar;
  /** null without a prompt whose ids are known. */
  keep(mark: Mark): KeptTokens | null;
};

export type SaidSoFar = { reasoning: string; text: string };

/** A question to the tokenizer takes milliseconds; a server that does not answer must not hold up the weights. */
const askWithinMs = 2_000;
/** The last places at which the answer grew: text that is held back, or a call that begins in the same chunk, ends before the second. */
const looks = 5;

/** null where nothing can be kept. Never throws. */
export async function keepTokens(sample: Keepable, { engine, model }: EngineLease): Promise<KeptTokens | null> {
  const limit = AbortSignal.timeout(askWithinMs);
  for (const mark of lastGrowths(sample.marks)) {
    const text = await engine.detokenize?.(model, sample.idsUntil(mark), limit).catch(() => null);
    if (typeof text === "string" && isAtRest(text, sample.saidUntil(mark))) return sample.keep(mark);
  }
  return null;
}

/** The last place, and those before at which more had been said than at the one before. */
function lastGrowths(marks: readonly Mark[]): Mark[] {
  const found: Mark[] = [];
  for (let at = marks.length - 1; at >= 0 && found.length < looks; at--) {
    const mark = marks[at] as Mark;
    const before = marks[at - 1];
    if (at === marks.length - 1 || before === undefined || before.text < mark.text || before.reasoning < mark.reasoning) found.push(mark);
  }
  return found;
}

/** Whether all that was sampled was said: nothing is held back, and apart from tags nothing was left out. */
export function isAtRest(sampled: string, { reasoning, text }: SaidSoFar): boolean {
  const last = text === "" ? reasoning : text;
  if (last === "" || !sampled.endsWith(last)) return false;
  const before = sampled.slice(0, sampled.length - last.length);
  const isWhole = text === "" || before.includes(reasoning);
  return isWhole && onlyTags.test(text === "" ? before : before.replace(reasoning, () => ""));
}

/** What encloses a thought: tags of one word, and white space. */
const onlyTags = /^(?:\s|<[^<>\s]{1,24}>|\[[A-Z_/]{1,16}\])*$/;

/**
 * Whether the engine's parser, which began anew, took the rest for something else than the beginning was. `first`: what it said
 * first. `sampled`: the text of the rest.
 */
export function isMisread(kept: readonly Part[], first: Part["type"] | null, said: string, sampled: string): boolean {
  const last = kept.at(-1)?.type;
  if (last === "text") return first === "reasoning";
  // A thought that ends at once is followed by its closing tag, and not by the words.
  return last === "reasoning" && first === "text" && sampled.startsWith(said);
}
