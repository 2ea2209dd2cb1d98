/**
 * Chunks of vLLM's stream in, events out. There are hundreds of them a call, so they are checked by hand: a schema
 * costs more than all else that is done to a chunk, and 30 000 prompt ids through one cost milliseconds.
 */

import { AlidadeError } from "../../base/errors.ts";
import { argumentsObject } from "../../base/schema/arguments.ts";
import type { FinishReason, JsonObject, Usage } from "../../base/schema/message.ts";
import { readJson } from "../../base/schema/read-json.ts";
import type { SampledToken } from "../../base/schema/sampled-token.ts";
import type { WeightSpan } from "../../base/schema/session-log.ts";
import { isIds, parseIds } from "../../base/tokens/id-text.ts";
import { isMeasured } from "../chat/alignment.ts";
import { chatFinish } from "../chat/finish.ts";
import { fromChatEntry, withOwnBytes } from "../chat/sampled-tokens.ts";
import type { SampleEvent, TokenSupport, TokenTexts } from "../engine.ts";
import { refusal } from "../http/refusal.ts";
import { type AskedList, supportOf } from "./listed-support.ts";
import { logprobEntry, readTokenChunk, type TokenChunk } from "./token-chunk.ts";
import { readWeightVersions } from "./weight-versions.ts";

/** `behind`: text that came while the call was written. */
type PendingCall = { index: number; id: string; name: string; arguments: string; behind: string };

/**
 * Tool-call fragments are joined: a call is emitted when the next one, the end, or text behind its complete arguments
 * begins. Text inside a call follows the call, because some parsers hold back text that shared a chunk with a call, and
 * send it between fragments of the next.
 */
export class ChunkReader {
  readonly #baseUrl: string;
  /** How many alternatives a token were asked for; null: none of the tokens is told. */
  readonly #top: number | null;
  readonly #texts: TokenTexts | undefined;
  /** The chunk before that had tokens, where texts are kept. */
  #chunkBefore: string | null = null;
  /** The last token that was told. */
  #last: SampledToken | undefined;
  readonly #isWhole: boolean;
  /** The list of tokens that was asked for, to tell which ones the sampling kept; null: it was not. */
  readonly #listed: AskedList | null;
  #pending: PendingCall | null = null;
  #finish: FinishReason | null = null;
  #stop: string | number | null = null;
  #usage: Usage = { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null };
  #model: string | null = null;
  #weights: WeightSpan[] | null = null;
  #sawPrompt = false;
  /** The pieces of the current chunk, where its fields were cut out. */
  #cutLogprobs: (number | null)[] | null = null;
  /** A chunk of an answer was read: what fails now fails in its middle. */
  hasBegun = false;
  /** The stream has ended with its last marker. */
  isDone = false;

  /** `isWhole`: the answer is one piece, and comes after the whole sample. */
  constructor(baseUrl: string, asked?: { top: number }, texts?: TokenTexts, isWhole = false, listed: AskedList | null = null) {
    this.#baseUrl = baseUrl;
    this.#listed = listed;
    this.#isWhole = isWhole;
    this.#top = asked?.top ?? null;
    this.#texts = texts;
  }

  /**
   * Adds what a chunk (bytes `start` to before `end`) says to `events`, joined to what came in the same read, so that a
   * burst costs one event and not hundreds. Throws `engine_error` for a chunk of another shape and for an error of the
   * engine's own.
   */
  read(bytes: Buffer, events: SampleEvent[], start = 0, end = bytes.length): void {
    if (this.isDone) return;
    const prompt = this.#sawPrompt ? null : cutPrompt(bytes.subarray(start, end));
    const text = prompt ? prompt.rest.toString("utf8") : bytes.toString("utf8", start, end);
    this.isDone = text === doneMarker;
    if (this.isDone) return;
    // What every chunk says of the answer is known from the first.
    const token = this.#model === null || this.#top !== null ? null : readTokenChunk(text);
    if (token) {
      this.#takeToken(token, events);
      this.#tellTexts(text, [token.id]);
    } else this.#readAny(text, prompt?.ids ?? null, events);
  }

  /** Call it at the end of an answer in one piece, which has no end marker. */
  finish(): void {
    this.isDone = true;
  }

  #readAny(text: string, promptIds: Buffer | null, events: SampleEvent[]): void {
    const chunk = this.#parse(text);
    if (chunk.error !== undefined && chunk.error !== null) throw this.#failure(chunk.error);
    this.hasBegun = true;
    try {
      if (promptIds) {
        this.#sawPrompt = true;
        events.push(this.#promptEvent(promptIds));
      }
      this.#take(chunk, text, events);
    } catch (error) {
      throw error instanceof WrongShape ? this.#notOurs(text, `: ${error.message}`) : error;
    }
  }

  /** A grammar that does not compile is refused behind a 200, as the first thing that the stream says. */
  #failure(error: unknown): AlidadeError {
    const { code, message } = isFields(error) ? error : {};
    if (!this.hasBegun && isNatural(code) && code >= 400 && code < 500 && isString(message))
      return refusal({ baseUrl: this.#baseUrl, status: code, errorText: message, sampledNothing: !this.#isWhole });
    return new AlidadeError(
      "engine_error",
      `the engine at ${this.#baseUrl} failed in the middle of an answer: ${JSON.stringify(error).slice(0, 500)}`,
    );
  }

  /** What is left when the stream has ended. Throws `engine_error` when it ended too early. */
  end(): SampleEvent[] {
    if (this.#finish === null)
      throw new AlidadeError("engine_error", `the engine at ${this.#baseUrl} ended its answer without a finish reason`);
    const events: SampleEvent[] = [];
    this.#flush(events);
    events.push({
      type: "end",
      finish_reason: this.#finish,
      stop: this.#stop,
      usage: this.#usage,
      engine_model: this.#model,
      ...(this.#weights && { weights: this.#weights }),
    });
    return events;
  }

  /** The ids are parsed on demand: a caller that knows the conversation compares the text instead. */
  #promptEvent(text: Buffer): SampleEvent {
    const fault = (): AlidadeError => this.#notOurs(text, ": prompt_token_ids");
    let ids: number[] | null = null;
    return {
      type: "prompt",
      text,
      get token_ids() {
        ids ??= parseIds(text);
        if (ids === null) throw fault();
        return ids;
      },
    };
  }

  #parse(text: string): JsonObject {
    let value: unknown;
    try {
      const cut = this.#top === null ? cutLogprobs(text) : null;
      value = readJson(cut?.rest ?? text);
      this.#cutLogprobs = cut?.logprobs ?? null;
    } catch {
      value = undefined;
    }
    if (!isFields(value)) throw this.#notOurs(text, "");
    return value;
  }

  #notOurs(data: Buffer | string, why: string): AlidadeError {
    return new AlidadeError(
      "engine_error",
      `the engine at ${this.#baseUrl} sent a chunk that is not of vLLM's shape${why}: ${typeof data === "string" ? data.slice(0, 200) : data.toString("utf8", 0, 200)}`,
    );
  }

  #take(chunk: JsonObject, written: string, events: SampleEvent[]): void {
    this.#model ??= optional(chunk, "model", isString);
    this.#takePrompt(chunk, events);
    const usage = optional(chunk, "usage", isFields);
    if (usage) this.#usage = toUsage(usage);
    const choice: unknown = optional(chunk, "choices", Array.isArray)?.[0];
    if (choice === undefined) return;
    if (!isFields(choice)) throw new WrongShape("choices");
    // Text completions have the prompt's ids in their first choice, and `text` where chats have a delta.
    this.#takePrompt(choice, events);
    const text = optional(choice, "text", isString);
    if (text) addText(events, "text-delta", text);
    const ids = optional(choice, "token_ids", isIds);
    if (ids?.length) {
      const told = this.#top === null ? null : toTokens(choice, ids, this.#top);
      const support = this.#listed && supportsOf(choice, ids, this.#listed);
      addTokens(events, ids, toLogprobs(choice, this.#cutLogprobs, ids.length), told && withOwnBytes(told, this.#last), support);
      this.#last = told?.at(-1);
      this.#tellTexts(written, ids);
    }
    const delta = optional(choice, "delta", isFields);
    if (delta) this.#takeDelta(delta, events);
    const finish = optional(choice, "finish_reason", isString);
    if (finish) {
      this.#finish = chatFinish(finish);
      this.#stop = optional(choice, "stop_reason", isStringOrNumber);
      this.#weights = readWeightVersions(choice.weight_versions);
    }
  }

  #takePrompt(fields: JsonObject, events: SampleEvent[]): void {
    const prompt = this.#sawPrompt ? null : optional(fields, "prompt_token_ids", isIds);
    if (!prompt?.length) return;
    this.#sawPrompt = true;
    events.push({ type: "prompt", token_ids: prompt });
  }

  #takeToken({ kind, text, call, id, logprob }: TokenChunk, events: SampleEvent[]): void {
    addTokens(events, [id], [logprob], null);
    if (kind === "arguments") this.#pendingAt(call, events).arguments += text;
    else this.#say(kind, text, events);
  }

  /** Texts are parsed only where an id is new, so a chunk costs a look at its ids. */
  #tellTexts(chunk: string, ids: readonly number[]): void {
    const texts = this.#texts;
    if (!texts) return;
    const before = this.#chunkBefore;
    this.#chunkBefore = chunk;
    if (ids.some((id) => texts.lacks(id))) texts.keep(withOwnBytes(tokensOf(chunk), before === null ? undefined : tokensOf(before).at(-1)));
  }

  #takeDelta(delta: JsonObject, events: SampleEvent[]): void {
    this.#say("reasoning", optional(delta, "reasoning", isString) ?? optional(delta, "reasoning_content", isString), events);
    this.#say("text", optional(delta, "content", isString), events);
    for (const fragment of optional(delta, "tool_calls", Array.isArray) ?? []) this.#takeFragment(fragment, events);
  }

  #takeFragment(fragment: unknown, events: SampleEvent[]): void {
    if (!isFields(fragment) || !isNatural(fragment.index)) throw new WrongShape("tool_calls");
    const pending = this.#pendingAt(fragment.index, events);
    const called = optional(fragment, "function", isFields) ?? {};
    pending.id ||= optional(fragment, "id", isString) ?? "";
    pending.name ||= optional(called, "name", isString) ?? "";
    pending.arguments += optional(called, "arguments", isString) ?? "";
  }

  #say(kind: "text" | "reasoning", text: string | null, events: SampleEvent[]): void {
    if (!text) return;
    if (kind === "text" && this.#pending && argumentsObject(this.#pending.arguments)) this.#flush(events);
    if (kind === "text" && this.#pending) this.#pending.behind += text;
    else addText(events, `${kind}-delta`, text);
  }

  #pendingAt(index: number, events: SampleEvent[]): PendingCall {
    if (this.#pending?.index !== index) {
      this.#flush(events);
      this.#pending = { index, id: "", name: "", arguments: "", behind: "" };
    }
    return this.#pending;
  }

  #flush(events: SampleEvent[]): void {
    if (!this.#pending) return;
    const { id, name, arguments: text, behind } = this.#pending;
    this.#pending = null;
    events.push({ type: "tool-call", id, name, arguments: text });
    if (behind !== "") addText(events, "text-delta", behind);
  }
}

/** What vLLM's streams end with. */
const doneMarker = "[DONE]";

const promptKey = Buffer.from('"prompt_token_ids":[');
const [comma, space, openingBrace, closingBracket] = [0x2c, 0x20, 0x7b, 0x5d];

/**
 * The text of the prompt's ids, and the chunk without them: a long prompt is nearly all of what an engine says, and
 * nearly all of it is known. Null where they are not there in vLLM's own compact form; JSON is parsed whole then.
 */
function cutPrompt(data: Buffer): { ids: Buffer; rest: Buffer } | null {
  const key = data.indexOf(promptKey);
  const start = key + promptKey.length;
  const end = key === -1 ? -1 : data.indexOf(closingBracket, start);
  // Only a key stands behind a brace or a comma: in a string its quotation mark would be escaped.
  if (end <= start || (data[key - 1] !== comma && data[key - 1] !== openingBrace)) return null;
  const ids = data.subarray(start, end);
  return ids.includes(space) ? null : { ids, rest: Buffer.concat([data.subarray(0, start), data.subarray(end)]) };
}

const logprobsKey = '"logprobs":{"content":[';
const nextLogprob = new RegExp(logprobEntry, "y");

/**
 * The logprobs of a chunk, and the chunk without them: of each entry one number is wanted, and parsing all of it into
 * objects costs twice as much. Null where an entry is written in another way; JSON is parsed whole then.
 */
function cutLogprobs(text: string): { logprobs: (number | null)[]; rest: string } | null {
  const key = text.indexOf(logprobsKey);
  if (key === -1) return null;
  const logprobs: (number | null)[] = [];
  let at = key + logprobsKey.length - 1;
  do {
    nextLogprob.lastIndex = at + 1;
    const entry = nextLogprob.exec(text);
    if (!entry) return null;
    const logprob = Number(entry[1]);
    logprobs.push(isMeasured(logprob) ? logprob : null);
    at = nextLogprob.lastIndex;
  } while (text[at] === ",");
  return text.startsWith("]}", at) ? { logprobs, rest: `${text.slice(0, key)}"logprobs":null${text.slice(at + 2)}` } : null;
}

function addText(events: SampleEvent[], type: "text-delta" | "reasoning-delta", text: string): void {
  // Tokens may stand between, for they say nothing about where text goes.
  const last = events.findLast((event) => event.type !== "tokens");
  if (last?.type === type) last.text += text;
  else events.push({ type, text });
}

function addTokens(
  events: SampleEvent[],
  ids: number[],
  logprobs: (number | null)[],
  tokens: SampledToken[] | null,
  support: TokenSupport[] | null = null,
): void {
  const last = events.findLast((event) => event.type === "tokens");
  if (!last) events.push({ type: "tokens", token_ids: ids, logprobs, ...(tokens && { tokens }), ...(support && { support }) });
  else {
    if (support) last.support = [...(last.support ?? []), ...support];
    if (tokens) last.tokens = [...(last.tokens ?? []), ...tokens];
    for (const id of ids) last.token_ids.push(id);
    for (const logprob of logprobs) last.logprobs.push(logprob);
  }
}

/** One logprob for each id of the chunk; all null where the engine gave another number of them. */
function toLogprobs(choice: JsonObject, cut: (number | null)[] | null, count: number): (number | null)[] {
  if (cut?.length === count) return cut;
  const logprobs = optional(choice, "logprobs", isFields);
  const content: unknown[] | null =
    logprobs && (optional(logprobs, "content", Array.isArray) ?? optional(logprobs, "token_logprobs", Array.isArray));
  if (content?.length !== count) return new Array<null>(count).fill(null);
  return content.map((entry) => {
    const logprob = isFields(entry) ? optional(entry, "logprob", isNumber) : entry;
    return isMeasured(logprob) ? logprob : null;
  });
}

/** One for each id, or none where the engine listed another number of places. */
function supportsOf(choice: JsonObject, ids: readonly number[], asked: AskedList): TokenSupport[] {
  const entries = optional(optional(choice, "logprobs", isFields) ?? {}, "content", Array.isArray) ?? [];
  return entries.length === ids.length ? ids.map((id, at) => supportOf(id, entries[at], asked)) : [];
}

/** null where the engine told another number of tokens than ids. */
function toTokens(choice: JsonObject, ids: readonly number[], top: number): SampledToken[] | null {
  const logprobs = optional(choice, "logprobs", isFields) ?? {};
  const entries = optional(logprobs, "content", Array.isArray) ?? textEntries(logprobs);
  if (entries.length !== ids.length || !entries.every(isFields)) return null;
  return ids.map((id, at) => fromChatEntry(id, entries[at] as JsonObject, top));
}

/** The tokens that a chunk tells; none where they are of another shape, or fewer or more than its ids. */
function tokensOf(chunk: string): SampledToken[] {
  try {
    const fields = readJson(chunk);
    const choice: unknown = isFields(fields) && optional(fields, "choices", Array.isArray)?.[0];
    return isFields(choice) ? (toTokens(choice, optional(choice, "token_ids", isIds) ?? [], 0) ?? []) : [];
  } catch {
    return [];
  }
}

/** Text completions have a list for each of their fields, and alternatives by their texts: the sampled one, and then the likeliest. */
function textEntries(logprobs: JsonObject): JsonObject[] {
  const [numbers, others] = ["token_logprobs", "top_logprobs"].map((name) => optional(logprobs, name, Array.isArray) ?? []);
  return (optional(logprobs, "tokens", Array.isArray) ?? []).map((token: unknown, at) => {
    const listed: unknown = others?.[at];
    const alternatives = isFields(listed) ? Object.entries(listed).map(([text, logprob]) => ({ token: text, logprob })) : [];
    const top_logprobs = alternatives.toSorted((one, other) => Number(other.logprob) - Number(one.logprob));
    return { token, logprob: numbers?.[at], top_logprobs };
  });
}

function toUsage(usage: JsonObject): Usage {
  const prompt = optional(usage, "prompt_tokens_details", isFields) ?? {};
  const completion = optional(usage, "completion_tokens_details", isFields) ?? {};
  return {
    prompt_tokens: optional(usage, "prompt_tokens", isNatural),
    cached_tokens: optional(prompt, "cached_tokens", isNatural),
    sampled_tokens: optional(usage, "completion_tokens", isNatural),
    reasoning_tokens: optional(completion, "reasoning_tokens", isNatural),
  };
}

/** Its message is the field's name. */
class WrongShape extends Error {}

/** The field's value, null where it is null or not there. */
function optional<T>(fields: JsonObject, name: string, is: (value: unknown) => value is T): T | null {
  const value = fields[name];
  if (value === undefined || value === null) return null;
  if (!is(value)) throw new WrongShape(name);
  return value;
}

const isString = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";
const isStringOrNumber = (value: unknown): value is string | number => isString(value) || isNumber(value);
const isNatural = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isFields = (value: unknown): value is JsonObject => value !== null && typeof value === "object" && !Array.isArray(value);
