/**
 * An API shape on the harness side: one object that answers every question the proxy asks. The proxy asks the object,
 * never its name.
 */
import type { AlidadeError } from "../../base/errors.ts";
import type { FinishReason, Message, NeutralRequest, Turn, Usage } from "../../base/schema/message.ts";
import type { SampledToken } from "../../base/schema/sampled-token.ts";
import type { RequestClass } from "../../base/schema/session-spec.ts";
import type { Framing } from "../../base/wire/framing.ts";
import type { SseFrame } from "../../base/wire/sse.ts";

export type { Framing, SseFrame };

/** Lower-case header names. */
export type Headers = Record<string, string | undefined>;

export type Route = {
  method: "GET" | "POST" | "DELETE";
  /** What this path alone says of the request: it joins the fields of the body, and takes the place of those of its names. */
  fields?: Readonly<Record<string, unknown>>;
  /** Hono path pattern below the session's base, such as `/v1/chat/completions`. */
  path: string;
  /**
   * `generate` is a call; no other route is recorded as a call. `count_tokens`, `models` and `model` (one model, `:id` in
   * the path) are answered from the engine. `hello` is an empty 200 for clients that check the connection. `record` reads
   * or deletes earlier answers (`answerFromRecord`). `websocket` refuses a protocol change at once.
   */
  kind: "generate" | "count_tokens" | "models" | "model" | "hello" | "record" | "websocket";
};

/** What the address of a request says: the parameters of its route's path, decoded, and its query. */
export type Address = { params: Record<string, string>; query: Record<string, string> };

/** Which of several samples of one request an answer is. */
export type ChoicePlace = { index: number; of: number };

/** A request for several samples as requests for one each, and their answers as one. */
export type SeveralAnswers = {
  /** Bodies, in the order of their choices; null where the request is for one. Throws `request_invalid`. */
  split(body: unknown): Record<string, unknown>[] | null;
  /** Whole answers, in that order. */
  join(bodies: readonly Record<string, unknown>[]): Record<string, unknown>;
  joiner(): StreamJoiner;
};

/** Streams of several answers as one. */
export interface StreamJoiner {
  /** What of these frames of one answer is the client's. `hasEnded`: that answer is whole with them. */
  take(frames: readonly SseFrame[]): { frames: SseFrame[]; hasEnded: boolean };
  /** Behind the end of all. */
  end(): SseFrame[];
}

/** Labels that a harness's headers and body fields give to the call. They grant no rights. */
export type CallLabels = { agent: string; request_class: RequestClass; labels: Record<string, string> };

/** What an answer needs to know beside the turn: all of it is in the record, so that answers can be rebuilt. */
export type AnswerContext = {
  call_id: string;
  /** Unix seconds. */
  created: number;
  model: string;
  /** The request's own fields that shape its answer (`native` of the neutral request). */
  native: Record<string, unknown>;
  /** Tool kinds by name: `custom` ones go out in the dialect's own form. */
  custom_tools: ReadonlySet<string>;
  /** The whole conversation of the request, for answers that repeat some of it. */
  messages?: readonly Message[];
};

/** A call as the record has it, with the ids that its harness knows. */
export type StoredCall = {
  context: AnswerContext;
  /** The whole conversation of the request. */
  messages: Message[];
  /** Null while it is generated, and where it failed. */
  turn: Turn | null;
  error: AlidadeError | null;
};

export type StoredConversation = {
  conversation_id: string;
  /** Unix seconds. */
  created: number;
  metadata: Record<string, unknown>;
  /** What it began with. */
  messages: Message[];
  /** The last call in it that has a turn. */
  latest_call_id: string | null;
};

/** What of a session a dialect's clients may ask for, refer to and add to: its own calls, and conversations. */
export interface SessionRecord {
  call(callId: string): StoredCall | null;
  /** A call's turn, even if no request may refer to it: for comparison with what the client sent back. */
  turn(callId: string): Turn | null;
  /** Notes that the client has the call's turn: this answer shows it, or this request names something that only its answer brings. */
  read(callId: string): void;
  conversation(conversationId: string): StoredConversation | null;
  openConversation(messages: Message[], metadata: Record<string, unknown>): Promise<StoredConversation>;
  /** Deletes the call or the conversation with this id: it stays in the log, and no request can refer to it. */
  delete(id: string): Promise<void>;
}

/** A request at a `record` route. */
export type RecordRequest = {
  method: string;
  /** The route's own pattern. */
  path: string;
  /** `:id` of the path. */
  id: string;
  query: Record<string, string>;
  body: unknown;
};

/** A turn on its way out. Ids in `tool-call` are the minted ones. */
export type TurnEvent =
  | { type: "text-delta"; text: string }
  | { type: "reasoning-delta"; text: string }
  | { type: "tool-call"; id: string; name: string; arguments: string }
  /** Only where the request asked for logprobs. They come before the text that they spell. */
  | { type: "tokens"; tokens: readonly SampledToken[] }
  | { type: "end"; finish_reason: FinishReason; stop: string | number | null; usage: Usage };

/**
 * Writes one streamed answer: `open`, then an `event` each, the last of which is `end`. One short method an event.
 * In buffered relay the stored turn is played through it as events; in live relay the engine's own events are.
 * An `end` with finish reason `abort` or `error` throws AlidadeError `engine_aborted`: such a turn is no answer.
 */
export interface StreamWriter {
  open(): SseFrame[];
  event(event: TurnEvent): SseFrame[];
  /** A harmless frame of the dialect's own that counts as activity; clients ignore SSE comments. */
  keepAlive(): SseFrame[];
  /** After the headers are sent, a failure is reported in the stream. */
  error(error: AlidadeError): SseFrame[];
}

export type HttpAnswer = { status: number; headers: Record<string, string>; body: unknown };

export interface Dialect {
  readonly name: string;
  readonly title: string;
  readonly routes: readonly Route[];
  /** What a conversation may hold and this wire has no place for: a sentence each, with what becomes of it here. */
  readonly cannot: readonly string[];
  /** Where the key is carried: header name, and the scheme in front of it, or a parameter of the query. */
  readonly credential: readonly ({ header: string; scheme?: "Bearer" } | { query: string })[];
  /** Variables that point an SDK of this dialect at us. `base` has no trailing slash and no `/v1`. */
  env(base: string, key: string): Record<string, string>;
  /**
   * Where the address says what other dialects say in the body: its fields, which join those of the body, and how a
   * stream is framed. Absent: the body says all, and streams are server-sent events.
   */
  address?(address: Address): { fields: Record<string, unknown>; framing: Framing };
  /** The list in the body that a conversation grows in, turn by turn. Absent: there is none. */
  readonly conversation?: string;
  /**
   * Keys in that list whose objects `parse` only copies as text, such as a tool's result. Numbers in them keep their
   * digits, which only JSON.stringify understands (see base/wire/written-numbers.ts). Tools' schemas are handled elsewhere.
   */
  readonly verbatim?: readonly string[];
  /**
   * Throws AlidadeError `request_invalid` with `param` naming the field. Changes nothing in the body: parts of it are read
   * again with the next one. What can only not be answered is no fault where `kind`, the route's, is `count_tokens`.
   */
  parse(body: unknown, headers: Headers, record?: SessionRecord, kind?: Route["kind"]): NeutralRequest;
  /** Absent: a request is for one sample. Which one of several an answer is stands in `native.choice`. */
  readonly several?: SeveralAnswers;
  labels(headers: Headers, body: Record<string, unknown>): CallLabels;
  /** The whole turn as one JSON body. */
  answer(turn: Turn, context: AnswerContext): Record<string, unknown>;
  writer(context: AnswerContext): StreamWriter;
  /** An error in this dialect's own shape, with the truth about retrying. */
  error(error: AlidadeError): HttpAnswer;
  /** Bodies of the routes that are no calls. */
  countTokens?(count: number): Record<string, unknown>;
  models?(models: string[]): Record<string, unknown>;
  model?(id: string): Record<string, unknown>;
  answerFromRecord?(request: RecordRequest, record: SessionRecord): Promise<Record<string, unknown>>;
}

/** A stored turn as the events of its answer, tool-call ids replaced by ours: the same way out for every relay. */
export function* toEvents(turn: Turn, mintId: (index: number) => string): Generator<TurnEvent> {
  let index = 0;
  if (turn.tokens) yield { type: "tokens", tokens: turn.tokens };
  for (const part of turn.message.parts) {
    if (part.type === "text") yield { type: "text-delta", text: part.text };
    else if (part.type === "reasoning") yield { type: "reasoning-delta", text: part.text };
    else if (part.type === "tool_call") yield { type: "tool-call", id: mintId(index++), name: part.name, arguments: part.arguments };
  }
  yield { type: "end", finish_reason: turn.finish_reason, stop: turn.stop, usage: turn.usage };
}
