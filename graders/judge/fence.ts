/**
 * Text of a stranger in a prompt: between two tags that it cannot guess, each line marked, and without what a template or a
 * reader could take for an end of it.
 */
import { randomBytes } from "node:crypto";
import type { GraderSampler } from "../grader.ts";
import { withoutMarks } from "./marks.ts";

export type FencedText = { tag: string; text: string };

/** 128 random bits: no work can close a fence that was made after it. `lines` are marked already. */
export function fenced(lines: string): FencedText {
  const tag = `work-${randomBytes(16).toString("hex")}`;
  return { tag, text: `<${tag}>\n${lines}\n</${tag}>` };
}

/** Marks the lines of a text. */
export function barred(text: string): string {
  return seen(text)
    .split("\n")
    .map((line) => `| ${line}`)
    .join("\n");
}

/** How the tokens of templates were found in a work: by the tokenizer, or why not by it. */
export type Parted = { lines: string; parted_by: string };

/** The marked lines of a work, in which the engines of this model read no token of a template. */
export async function partedLines(text: string, { tokenizers }: GraderSampler, model: string, signal: AbortSignal): Promise<Parted> {
  const lines = barred(text);
  const engines = tokenizers(model);
  const silent = engines.filter(({ tokenizer }) => tokenizer === null).map(({ engine }) => engine);
  const known = engines.flatMap(({ tokenizer }) => tokenizer ?? []);
  const spaced = silent.length === 0 ? lines : lines.replaceAll(brackets, "$& ");
  const parted = await withoutMarks(spaced, known, signal);
  if (silent.length === 0) return { lines: parted, parted_by: "tokenizer" };
  return { lines: parted, parted_by: `a space behind each bracket: ${silent.join(", ")} has no tokenizer that can be asked` };
}

/** Tokens of templates are written with brackets and bars, for a text of people rarely has them in a row with letters. */
const brackets = /[<[{(|｜\])}>](?=\S)/gu;

/** Line ends that some readers know beside the common one. */
const lineEnds = /\r\n?|[\v\f\u0085\u2028\u2029]/g;
/** Control and format characters and variation selectors: they hide words from a person that a model reads. */
const unseen = /\p{Cc}|\p{Cf}|\p{Variation_Selector}/gu;

function seen(text: string): string {
  return text.replaceAll(lineEnds, "\n").replaceAll(unseen, (found) => (found === "\n" || found === "\t" ? found : ""));
}
