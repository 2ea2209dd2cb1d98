/** The contents of a generateContent request: parts in order, function responses as messages of their own. */

import { z } from "zod";
import { fromToolCallId, mintToolCallId } from "../../../base/schema/ids.ts";
import type { ContentPart, Message, Part, ToolCallPart } from "../../../base/schema/message.ts";
import { fromCarrier } from "../carrier.ts";
import { AnyObject, checked, invalid, isObject, JsonObject, MaybeText } from "../edge.ts";
import { HostedParts } from "./hosted-parts.ts";
import { camelKeys } from "./wire.ts";

const Content = z.looseObject({ role: z.enum(["user", "model", "function", "system"]).nullish(), parts: z.array(z.unknown()).nullish() });
const FunctionCall = z.looseObject({ id: z.string().nullish(), name: z.string(), args: JsonObject.nullish() });
const FunctionResponse = z.looseObject({
  id: z.string().nullish(),
  name: z.string(),
  response: JsonObject.nullish(),
  parts: z.array(z.unknown()).nullish(),
});
const InlineData = z.looseObject({ mimeType: z.string(), data: z.string() });
const FileData = z.looseObject({ fileUri: z.string(), mimeType: z.string().nullish() });

export function parseContents(values: unknown[], at: string): Message[] {
  const calls = new Calls();
  const messages: Message[] = [];
  for (const [index, value] of values.entries()) {
    const here = `${at}[${index}]`;
    const content = checked(Content, value, here);
    const parts = (content.parts ?? []).map((part, partIndex) => partOf(part, `${here}.parts[${partIndex}]`));
    if (content.role === "model") messages.push(...parseModel(parts, `${here}.parts`, calls));
    else messages.push(...parseUser(content.role === "system" ? "system" : "user", parts, `${here}.parts`, calls));
  }
  return messages;
}

/** A system instruction: a Content, its parts, or a string. Empty: no message. */
export function parseSystem(value: unknown, at: string): Message[] {
  if (value === null || value === undefined) return [];
  const parts: unknown = isObject(value) ? (value.parts ?? [value]) : Array.isArray(value) ? value : [value];
  const texts = checked(z.array(z.unknown()), parts, `${at}.parts`).flatMap((part, index) => {
    const { text } = partOf(part, `${at}.parts[${index}]`);
    if (typeof text !== "string") throw invalid(`${at}.parts[${index}]`, "only text is supported here");
    return textParts(text);
  });
  return texts.length === 0 ? [] : [{ role: "system", parts: texts }];
}

function partOf(value: unknown, at: string): JsonObject {
  if (typeof value === "string") return { text: value };
  return camelKeys(checked(AnyObject, value, at));
}

/** What Google's own tools brought stands between the parts: a message of a result, with the turn on both sides of it. */
function parseModel(parts: JsonObject[], at: string, calls: Calls): Message[] {
  const messages: Message[] = [];
  let out: Part[] = [];
  const carried = new Set<string>();
  const counts = new Map<string, number>();
  for (const [index, part] of parts.entries()) {
    const here = `${at}[${index}]`;
    const carrier = typeof part.thoughtSignature === "string" ? part.thoughtSignature : "";
    const from = fromCarrier(carrier);
    // Beside a call or a text a signature of ours names the turn too, and stands for its thought: once is enough.
    if (part.thought !== true && from !== null && !carried.has(from)) {
      carried.add(from);
      out.push({ type: "reasoning", text: "", carrier });
    }
    const ran = calls.hosted.read(part);
    if (ran !== null && "role" in ran) {
      messages.push(...(out.length > 0 ? [{ role: "assistant" as const, parts: out }] : []), ran);
      out = [];
    } else if (ran !== null) out.push(ran);
    else if (isObject(part.functionCall)) {
      const call = checked(FunctionCall, camelKeys(part.functionCall), `${here}.functionCall`);
      out.push(calls.open(call, from, counts));
    } else if (part.thought === true) out.push({ type: "reasoning", text: textOf(part, here), ...(carrier !== "" && { carrier }) });
    else out.push(...parseContentPart(part, here));
  }
  return out.length > 0 || messages.length === 0 ? [...messages, { role: "assistant", parts: out }] : messages;
}

/** One content may hold several function responses and other parts: each response is a message, the rest stays around it in order. */
function parseUser(role: "user" | "system", parts: JsonObject[], at: string, calls: Calls): Message[] {
  const messages: Message[] = [];
  let rest: Part[] = [];
  const flush = (): void => {
    if (rest.length > 0) messages.push({ role, parts: rest });
    rest = [];
  };
  for (const [index, part] of parts.entries()) {
    const here = `${at}[${index}]`;
    if (!isObject(part.functionResponse)) rest.push(...parseContentPart(part, here));
    else {
      flush();
      messages.push(parseResponse(part.functionResponse, `${here}.functionResponse`, calls));
    }
  }
  flush();
  return messages.length > 0 ? messages : [{ role, parts: [] }];
}

/** A response that always has a place for an error says with these that there was none. */
const noError: ReadonlySet<string | undefined> = new Set([undefined, "null", '""', "false", "{}", "[]"]);

/**
 * Google's rule: `output` is what the function gave, `error` what went wrong, and without either the whole response counts.
 * It counts as well where it says more than that one: what stands beside it is a result too.
 */
function parseResponse(value: JsonObject, at: string, calls: Calls): Message {
  const answer = checked(FunctionResponse, camelKeys(value), at);
  const response = answer.response ?? {};
  const error = JSON.stringify(response.error);
  const isError = !noError.has(error) && Number(error) !== 0;
  const output = outputOf(response, isError);
  const media = (answer.parts ?? []).flatMap((part, index) =>
    parseContentPart(partOf(part, `${at}.parts[${index}]`), `${at}.parts[${index}]`),
  );
  const content = [...textParts(typeof output === "string" ? output : JSON.stringify(output)), ...media];
  return { role: "tool", parts: [{ type: "tool_result", call_id: calls.take(answer.id ?? "", answer.name), content, is_error: isError }] };
}

function outputOf(response: JsonObject, isError: boolean): unknown {
  const [only, ...more] = Object.keys(response);
  if (only === undefined) return "";
  if (more.length > 0) return response;
  if (only === "error" && isError) return response.error;
  return only === "output" ? (response.output ?? response) : response;
}

function parseContentPart(part: JsonObject, at: string): ContentPart[] {
  if (typeof part.text === "string") return textParts(part.text);
  if (part.inlineData !== undefined) {
    const { mimeType, data } = checked(
      InlineData,
      isObject(part.inlineData) ? camelKeys(part.inlineData) : part.inlineData,
      `${at}.inlineData`,
    );
    if (mimeType.startsWith("image/")) return [{ type: "image", url: `data:${mimeType};base64,${data}` }];
    throw invalid(`${at}.inlineData.mimeType`, `data of type "${mimeType}" is not supported; images are`);
  }
  if (part.fileData !== undefined) return [imageOfFile(part.fileData, `${at}.fileData`)];
  if (Object.keys(part).some((key) => key !== "thought" && key !== "thoughtSignature"))
    throw invalid(
      at,
      `a part of ${Object.keys(part).join(", ")} is not supported here; text, inlineData, fileData, functionCall and functionResponse are`,
    );
  return [];
}

function imageOfFile(value: unknown, at: string): ContentPart {
  const file = checked(FileData, isObject(value) ? camelKeys(value) : value, at);
  if (!/^https?:/.test(file.fileUri))
    throw invalid(`${at}.fileUri`, `files are not stored here; send the data itself (inlineData) instead of "${file.fileUri}"`);
  if (file.mimeType != null && !file.mimeType.startsWith("image/"))
    throw invalid(`${at}.mimeType`, `files of type "${file.mimeType}" are not supported; images are`);
  return { type: "image", url: file.fileUri };
}

function textOf(part: JsonObject, at: string): string {
  return checked(MaybeText, part.text, `${at}.text`) ?? "";
}

/** Empty text is no part. */
function textParts(text: string): ContentPart[] {
  return text === "" ? [] : [{ type: "text", text }];
}

/** The function calls of a conversation, and those that wait for their response: older clients leave ids out. */
class Calls {
  readonly hosted = new HostedParts();
  #open: { call: ToolCallPart; hasOwnId: boolean }[] = [];
  #count = 0;

  /** `from`: the call of ours that the part's signature names. `counts`: of each, how many function calls stand before in the message. */
  open(sent: z.output<typeof FunctionCall>, from: string | null, counts: Map<string, number>): ToolCallPart {
    this.#count++;
    const call: ToolCallPart = {
      type: "tool_call",
      id: sent.id || (from === null ? `function${this.#count}` : mintToolCallId(from, counts.get(from) ?? 0)),
      name: sent.name,
      // The text that was sampled is lost on this wire; restore finds it again by the id.
      arguments: JSON.stringify(sent.args ?? {}),
      kind: "function",
    };
    const own = fromToolCallId(call.id)?.call_id;
    if (own !== undefined) counts.set(own, (counts.get(own) ?? 0) + 1);
    this.#open.push({ call, hasOwnId: Boolean(sent.id) });
    return call;
  }

  /**
   * The id of the call that a response answers: as named; else, for Gemini CLI's sub-agents name calls only in the
   * response, the oldest open call of that name that came without an id; else the oldest.
   */
  take(id: string, name: string): string {
    const nameless = this.#open.filter((one) => id === "" || !one.hasOwnId);
    const found =
      this.#open.find(({ call }) => call.id === id) ??
      nameless.find(({ call }) => call.name === name) ??
      (id === "" ? this.#open[0] : undefined);
    this.#open = this.#open.filter((one) => one !== found);
    return found?.call.id ?? id;
  }
}
