/**
 * The chunk that vLLM sends for a token in the middle of an answer: nearly all chunks of a live stream are of this one
 * form, and reading it as it stands costs a third of what parsing JSON into objects does.
 */
import { isMeasured } from "../chat/alignment.ts";

export type TokenChunk = {
  /** What the text is. `arguments`: a piece of those of the tool call `call`. */
  kind: "text" | "reasoning" | "arguments";
  text: string;
  call: number;
  id: number;
  /** Null where it was not measured. */
  logprob: number | null;
};

// Nothing that is no JSON has this form, and no number that an id cannot be.
const plainString = String.raw`"[^"\\\x00-\x1f]*"`;
const string = String.raw`"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"`;
const natural = String.raw`(?:0|[1-9]\d{0,8})`;
const number = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`;
const naturals = String.raw`\[(?:${natural}(?:,${natural})*)?\]`;
/** One token's logprob as vLLM writes it without alternatives: the number is its one group. */
export const logprobEntry = String.raw`\{"token":${string},"logprob":(${number}|null),"bytes":(?:${naturals}|null),"top_logprobs":\[\]\}`;
const head = String.raw`\{"id":${plainString},"object":${plainString},"created":(?:0|[1-9]\d*),"model":${plainString}`;
const delta = String.raw`\{(?:"(content|reasoning|reasoning_content)":(${string})|"tool_calls":\[\{"index":(${natural}),"function":\{"arguments":(${string})\}\}\])\}`;
const form = new RegExp(
  String.raw`^${head},"choices":\[\{"index":0,"delta":${delta},"logprobs":\{"content":\[${logprobEntry}\]\},"finish_reason":null,(?:"stop_reason":null,)?"token_ids":\[(${natural})\]\}\]\}$`,
);

/** What a chunk says of its token; null where it is not of this form, and has to be parsed. */
export function readTokenChunk(chunk: string): TokenChunk | null {
  const found = form.exec(chunk);
  if (!found) return null;
  const [, field, text, index, args, logprob, id] = found;
  const literal = text ?? args ?? "";
  const measured = Number(logprob);
  return {
    kind: field === undefined ? "arguments" : field === "content" ? "text" : "reasoning",
    text: literal.includes("\\") ? (JSON.parse(literal) as string) : literal.slice(1, -1),
    call: Number(index ?? 0),
    id: Number(id),
    logprob: isMeasured(measured) ? measured : null,
  };
}
