/**
 * Text of a stranger in a prompt: between two tags that it cannot guess, each line marked, and without what a template or a
 * reader could take for an end of it.
 */
import { randomBytes } from "node:crypto";

export type FencedText = { tag: string; text: string };

/** 128 random bits: no work can close a fence that was made after it. */
export function fenced(text: string): FencedText {
  const tag = `work-${randomBytes(16).toString("hex")}`;
  const lines = harmless(text)
    .split("\n")
    .map((line) => `| ${line}`);
  return { tag, text: [`<${tag}>`, ...lines, `</${tag}>`].join("\n") };
}

/** Line ends that some readers know beside the common one. */
const lineEnds = /\r\n?|[\v\f\u0085\u2028\u2029]/g;
/** Control and format characters and variation selectors: they hide words from a person that a model reads. */
const unseen = /\p{Cc}|\p{Cf}|\p{Variation_Selector}/gu;
/** Tokens of chat templates: a tokenizer may read them in any text. */
const tokens =
  /<(?=[|｜])|[|｜](?=>)|[<[](?=\/?(?:s|bos|eos|pad|unk|think|tool_call|tool_response|(?:start|end)_of_turn|INST|(?:AVAILABLE_)?TOOLS?(?:_CALLS|_RESULTS)?|SYSTEM_PROMPT)[>\]])|<(?=<\/?SYS)/giu;

/** What is not seen is taken out first; then a space parts each token, so that no new one arises. */
function harmless(text: string): string {
  const shown = text.replaceAll(lineEnds, "\n").replaceAll(unseen, (found) => (found === "\n" || found === "\t" ? found : ""));
  return shown.replaceAll(tokens, "$& ");
}
