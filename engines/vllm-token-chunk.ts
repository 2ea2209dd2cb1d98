/**
 * The chunk that vLLM sends for a token in the middle of an answer: nearly all chunks of a live stream are of this one
 * form, and reading it as it stands costs a third of what parsing JSON into objects does.
 */
import { isMeasured } from "./alignment.ts";

export type TokenChunk = {
  /** What the text is. `arguments`: a piece of those of the tool call `call`. */
  kind: "text" | "reasoning" | "arguments";
  text: string;
  call: number;
  id: number;
  /** Null where it was not measured. */
  logprob: number | null;
};

const plainString = String.raw`"[^"\\\x00-\x1f]*"`;
const string = String.raw`"(?:[^"\\\x00-\x1f]|\\.)*"`;
const natural = String.raw`(0|[1-9]\d{0,9})`;
const head = String.raw`\{"id":${plainString},"object":${plainString},"created":\d+,"model":${plainString}`;
const delta = String.raw`\{(?:"(content|reasoning|reasoning_content)":(${string})|"tool_calls":\[\{"index":${natural},"function":\{"arguments":(${string})\}\}\])\}`;
const logprobs = String.raw`\{"content":\[\{"token":${string},"logprob":(-?[\d.eE+-]+|null),"bytes":(?:\[[\d,]*\]|null),"top_logprobs":\[\]\}\]\}`;
const form = new RegExp(
  String.raw`^${head},"choices":\[\{"index":0,"delta":${delta},"logprobs":${logprobs},"finish_reason":null,(?:"stop_reason":null,)?"token_ids":\[${natural}\]\}\]\}$`,
);

/** What a chunk says of its token; null where it is not of this form, and has to be parsed. */
export function readTokenChunk(chunk: string): TokenChunk | null {
  const found = form.exec(chunk);
  if (!found) return null;
  const [, field, said, index, args, logprob, id] = found;
  const text = unquoted(said ?? args ?? "");
  if (text === null) return null;
  const measured = Number(logprob);
  return {
    kind: field === undefined ? "arguments" : field === "content" ? "text" : "reasoning",
    text,
    call: Number(index ?? 0),
    id: Number(id),
    logprob: isMeasured(measured) ? measured : null,
  };
}

/** A string of JSON; null where its escapes are none. */
function unquoted(literal: string): string | null {
  if (!literal.includes("\\")) return literal.slice(1, -1);
  try {
    return JSON.parse(literal) as string;
  } catch {
    return null;
  }
}
