/**
 * Turns the chat route's answer in one piece into the only chunk of a stream, for the reader of chunks. Only such an answer tells which
 * experts the tokens took.
 */
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { tryJson } from "../../base/schema/read-json.ts";

const Called = z.looseObject({ function: z.looseObject({ arguments: z.string().nullish() }) });

const WholeChoice = z.looseObject({
  message: z.looseObject({ tool_calls: z.array(Called).nullish() }),
  logprobs: z.looseObject({ content: z.array(z.looseObject({ bytes: z.array(z.number()).nullish() })).nullish() }).nullish(),
  routed_experts: z.string().nullish(),
});
type WholeChoice = z.infer<typeof WholeChoice>;

const Whole = z.looseObject({ choices: z.tuple([WholeChoice]) });

/** `chunk` is the unchanged answer if it has another shape: the reader then names the error. */
export function wholeAnswer(text: string): { chunk: Buffer; experts: string | null } {
  const read = Whole.safeParse(tryJson(text));
  if (!read.success) return { chunk: Buffer.from(text), experts: null };
  const [{ message, routed_experts, ...choice }] = read.data.choices;
  const { tool_calls, ...said } = message;
  const raw = rawArguments(choice.logprobs?.content ?? [], tool_calls ?? []);
  const calls = (tool_calls ?? []).map((call, index) => ({
    ...call,
    index,
    function: { ...call.function, arguments: raw[index] },
  }));
  const delta = { ...said, ...(calls.length > 0 && { tool_calls: calls }) };
  return {
    chunk: Buffer.from(JSON.stringify({ ...read.data, choices: [{ ...choice, delta }] })),
    experts: routed_experts ?? null,
  };
}

/** Bounds the objects that are looked at for each call, because each one costs a scan of the text after it. */
const objectsACall = 16;
/** Bounds the scans of a text whose braces never close. Without it a turn of many calls would hold the process for seconds. */
const mostReads = 64;

type Written = { start: number; end: number; value: unknown };

/**
 * Returns arguments as the model wrote them. Some parsers, such as vLLM's for hermes, keep the JSON in a stream, but write it anew in an
 * answer in one piece. A harness must not see the difference. So arguments of equal value are taken from the sampled text.
 */
function rawArguments(
  content: NonNullable<NonNullable<WholeChoice["logprobs"]>["content"]>,
  calls: readonly z.infer<typeof Called>[],
): string[] {
  const parsed = calls.map((call) => call.function.arguments ?? "");
  if (calls.length === 0) return parsed;
  const text = Buffer.concat(content.map(({ bytes }) => Buffer.from(bytes ?? []))).toString("utf8");
  const written = writtenObjects(text, (calls.length + 1) * objectsACall);
  let behind = 0;
  return parsed.map((one) => {
    const value = tryJson(one);
    const found = written.find(({ start, value: other }) => start >= behind && isDeepStrictEqual(other, value));
    if (found === undefined) return one;
    behind = found.end;
    return text.slice(found.start, found.end);
  });
}

function writtenObjects(text: string, limit: number): Written[] {
  const found: Written[] = [];
  let start = text.indexOf("{");
  let read = 0;
  for (let looked = 0; start !== -1 && looked < limit && read < mostReads * text.length; looked++, start = text.indexOf("{", start + 1)) {
    const end = endOfObject(text, start);
    read += (end ?? text.length) - start;
    const value = end === null ? undefined : tryJson(text.slice(start, end));
    if (end !== null && value !== undefined) found.push({ start, end, value });
  }
  return found;
}

/** Returns the end of the JSON object that begins at `start`; null: it does not end. */
function endOfObject(text: string, start: number): number | null {
  let depth = 0;
  let isString = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (isString && character === "\\") at++;
    else if (character === '"') isString = !isString;
    else if (!isString && character === "{") depth++;
    else if (!isString && character === "}" && --depth === 0) return at + 1;
  }
  return null;
}
