/**
 * Decides how many tokens of an interrupted sample are kept. A second request goes on from them, and the engine's parser begins
 * anew with it. So the sample may be cut only where the first parser was at rest: it had given out all tokens so far as text or as
 * a thought, and no tool call had begun. Later tokens are dropped, and the record says how many.
 */
import type { Part } from "../../../base/schema/message.ts";
import type { SampledToken } from "../../../base/schema/sampled-token.ts";
import type { EngineLease } from "../../pool/engine-lease.ts";
import type { PromptTokens } from "../../session/prompt-tokens.ts";
import type { HeldSet } from "../numbers/sampled-support.ts";

/** A place where a sample may be cut. After `ids` ids the answer had this many characters of each kind, and no tool call. */
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
  /** What the parser had given out by then. */
  saidUntil(mark: Mark): SaidSoFar;
  /** null without a prompt whose ids are known. */
  keep(mark: Mark): KeptTokens | null;
};

export type SaidSoFar = { reasoning: string; text: string };

/** A question to the tokenizer takes milliseconds; a server that does not answer must not hold up the weights. */
const askWithinMs = 2_000;
/**
 * How many places are tried to cut the answer, the last ones first. At the very last one, text may be held back, or a tool call may
 * begin. The one before it is free of both.
 */
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

/** Returns the last mark, and earlier ones at which the answer had grown since the mark before. The latest comes first. */
function lastGrowths(marks: readonly Mark[]): Mark[] {
  const found: Mark[] = [];
  for (let at = marks.length - 1; at >= 0 && found.length < looks; at--) {
    const mark = marks[at] as Mark;
    const before = marks[at - 1];
    if (at === marks.length - 1 || before === undefined || before.text < mark.text || before.reasoning < mark.reasoning) found.push(mark);
  }
  return found;
}

/** True if the parser gave out all that was sampled. It holds nothing back, and left out nothing but tags. */
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
 * True if the restarted parser read the rest as another kind of part than the kept beginning. `first` and `said`:
 * kind and text of the first part that it gave out. `sampled`: the text of all tokens behind the kept ones.
 */
export function isMisread(kept: readonly Part[], first: Part["type"] | null, said: string, sampled: string): boolean {
  const last = kept.at(-1)?.type;
  if (last === "text") return first === "reasoning";
  // A thought that ends at once is followed by its closing tag, and not by the words.
  return last === "reasoning" && first === "text" && sampled.startsWith(said);
}
