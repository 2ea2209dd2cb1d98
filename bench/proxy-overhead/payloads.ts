/**
 * The conversations that are played and the answers of the model, as bytes. Both sides compute them from the same
 * seed: the load generator the requests, the mock upstream the answers. A session grows at its end: each turn appends
 * the model's last turn (text and one tool call, as it was said) and the tool's result, and the prompt ids of a turn
 * begin with those of the turn before and all that it sampled, as they do at a real engine.
 */

import { openingOf, type WireName, wires, writeOpening } from "./wires.ts";

export type PayloadName = "a" | "b" | "b-stream" | "c" | "l" | "s";

export type Payload = {
  name: PayloadName;
  title: string;
  /** What the harness asks for. */
  stream: boolean;
  /** Calls of a session that grows. Sizes are those of the middle turn. */
  turns: number;
  requestBytes: number;
  promptIds: number;
  sampled: number;
  observationIds: number;
};

export const payloads: readonly Payload[] = [
  { name: "a", title: "small", stream: false, turns: 4, requestBytes: 4_200, promptIds: 1_000, sampled: 200, observationIds: 100 },
  { name: "b", title: "agentic", stream: false, turns: 20, requestBytes: 120_000, promptIds: 30_000, sampled: 500, observationIds: 500 },
  {
    name: "b-stream",
    title: "agentic, streamed",
    stream: true,
    turns: 20,
    requestBytes: 120_000,
    promptIds: 30_000,
    sampled: 500,
    observationIds: 500,
  },
  { name: "l", title: "long", stream: false, turns: 6, requestBytes: 512_000, promptIds: 128_000, sampled: 500, observationIds: 500 },
  { name: "c", title: "stream", stream: true, turns: 2, requestBytes: 4_200, promptIds: 1_000, sampled: 500, observationIds: 50 },
];

/** A session of 60 calls that ends at 60 k tokens, 18 k of them sampled: for what is stored of one, and not for speed. */
const longSession: Payload = {
  name: "s",
  title: "a session of 60 calls",
  stream: false,
  turns: 60,
  requestBytes: 150_000,
  promptIds: 36_000,
  sampled: 300,
  observationIds: 500,
};

export function payloadOf(name: string): Payload {
  const found = [...payloads, longSession].find((payload) => payload.name === name);
  if (!found) throw new Error(`no payload is named "${name}"; there are ${payloads.map((payload) => payload.name).join(", ")}`);
  return found;
}

export const modelOf = (payload: Payload): string => `bench-${payload.name}`;

/** Tells the mock which turn is asked for: the last one in the request counts. */
export const turnMarker = (turn: number): string => `[turn ${String(turn).padStart(2, "0")}]`;

/** Average length of a token's text, a little under that of English in today's vocabularies. */
const charactersAToken = 4;
/** The part of a turn's tokens that are a tool call's arguments. */
const argumentShare = 0.2;

/** The texts of the sampled tokens of one turn; the last is the end of the turn, which has none. */
export function sampledTexts(payload: Payload, turn: number): { content: string[]; args: string[] } {
  const random = randomFrom(payload.sampled * 1_000 + turn);
  const args = Math.floor(payload.sampled * argumentShare);
  const word = () => `${letters(random, charactersAToken - 1)} `;
  return {
    content: Array.from({ length: payload.sampled - args - 1 }, word),
    args: ['{"command":"', ...Array.from({ length: args - 2 }, word), '"}'],
  };
}

/** Prompt ids of a turn: those of turn 0, then of each turn before it what was sampled and what was observed. */
export function promptIds(payload: Payload, turn: number): number[] {
  const first = payload.promptIds - Math.floor(payload.turns / 2) * (payload.sampled + payload.observationIds);
  const ids = idsFrom(1, first);
  for (let before = 0; before < turn; before++)
    ids.push(...sampledIds(payload, before), ...idsFrom(20_000 + before, payload.observationIds));
  return ids;
}

export function sampledIds(payload: Payload, turn: number): number[] {
  return idsFrom(10_000 + turn, payload.sampled);
}

/** The request of a turn in pieces, so that the ids which the harness was given can be put between them. */
export type Conversation = {
  head: Buffer;
  tail: Buffer;
  /** What turn t+1 appends to the request of turn t: `[0] id [1] id [2]`. */
  appended: [Buffer, Buffer, Buffer][];
};

export function conversationOf(payload: Payload, wireName: WireName = "openai-chat"): Conversation {
  const wire = wires[wireName];
  const random = randomFrom(payload.requestBytes);
  const text = (length: number) => Array.from({ length: Math.max(1, Math.round(length / 5)) }, () => letters(random, 4)).join(" ");
  const appended = Array.from({ length: payload.turns - 1 }, (_, turn) => {
    const { content, args } = sampledTexts(payload, turn);
    const result = `${turnMarker(turn + 1)} ${text(payload.observationIds * charactersAToken)}`;
    const [said, called, answered] = wire.turn(content.join(""), args.join(""), result);
    return [Buffer.from(`,${said}`), Buffer.from(called), Buffer.from(answered)] as [Buffer, Buffer, Buffer];
  });
  const growth = appended.slice(0, Math.floor(payload.turns / 2)).reduce((sum, pieces) => sum + Buffer.concat(pieces).length, 0);
  const opening = openingOf(Math.max(600, payload.requestBytes - growth - 500), turnMarker(0), text);
  const head = writeOpening(wire, modelOf(payload), payload.stream, opening);
  return { head: Buffer.from(head), tail: Buffer.from("]}"), appended };
}

/** The request of a turn. `ids[t]` is the tool-call id that turn t was answered with. */
export function requestBody(conversation: Conversation, ids: readonly Buffer[]): Buffer {
  const pieces = [conversation.head];
  for (const [turn, id] of ids.entries()) {
    const [said, called, result] = conversation.appended[turn]!;
    pieces.push(said, id, called, id, result);
  }
  return Buffer.concat([...pieces, conversation.tail]);
}

/** vLLM's whole answer. */
export function wholeReply(payload: Payload, turn: number): string {
  const { content, args } = sampledTexts(payload, turn);
  const prompt = promptIds(payload, turn);
  return JSON.stringify({
    ...replyHead(payload, "chat.completion"),
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: content.join(""),
          tool_calls: [{ ...toolCall(turn), function: { name: "bash", arguments: args.join("") } }],
        },
        logprobs: { content: [...content, ...args, ""].map(logprob) },
        finish_reason: "tool_calls",
        stop_reason: null,
        token_ids: sampledIds(payload, turn),
      },
    ],
    usage: usage(payload, prompt.length),
    prompt_token_ids: prompt,
  });
}

/** vLLM's stream of the same answer: the first token alone, then an event for every `pace` tokens. */
export function streamReply(payload: Payload, turn: number, pace: number): string[] {
  const { content, args } = sampledTexts(payload, turn);
  const prompt = promptIds(payload, turn);
  const head = replyHead(payload, "chat.completion.chunk");
  const texts = [...content, ...args, ""];
  const ids = sampledIds(payload, turn);
  const chunk = (from: number, to: number) => ({
    ...head,
    choices: [
      {
        index: 0,
        delta: delta(turn, content.slice(from, to).join(""), args, from - content.length, to - content.length),
        logprobs: { content: texts.slice(from, to).map((text, at) => logprob(text, from + at)) },
        finish_reason: to === texts.length ? "tool_calls" : null,
        stop_reason: null,
        token_ids: ids.slice(from, to),
      },
    ],
  });
  const chunks: unknown[] = [
    {
      ...head,
      choices: [{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }],
      prompt_token_ids: prompt,
    },
    chunk(0, 1),
  ];
  for (let at = 1; at < texts.length; at += pace) chunks.push(chunk(at, Math.min(at + pace, texts.length)));
  chunks.push({ ...head, choices: [], usage: usage(payload, prompt.length) });
  return [...chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`), "data: [DONE]\n\n"];
}

/** What tokens `from` to `to` of the arguments, and `content` before them, are in a chunk. */
function delta(turn: number, content: string, args: string[], from: number, to: number): Record<string, unknown> {
  const said = args.slice(Math.max(0, from), Math.max(0, to)).join("");
  const call = { index: 0, ...(from <= 0 ? toolCall(turn) : {}), function: { ...(from <= 0 && { name: "bash" }), arguments: said } };
  return { ...(content !== "" && { content }), ...(said !== "" && { tool_calls: [call] }) };
}

function replyHead(payload: Payload, object: string) {
  return { id: "chatcmpl-0123456789abcdef0123456789abcdef", object, created: 1_790_000_000, model: modelOf(payload) };
}

function toolCall(turn: number) {
  return { id: `chatcmpl-tool-${String(turn).padStart(16, "0")}`, type: "function" };
}

function logprob(token: string, at: number) {
  return { token, logprob: -(((at * 7_919) % 99_991) + 1) / 25_000, bytes: [...Buffer.from(token)], top_logprobs: [] };
}

function usage(payload: Payload, prompt: number) {
  return { prompt_tokens: prompt, total_tokens: prompt + payload.sampled, completion_tokens: payload.sampled };
}

/** Ids as long as a real tokenizer's on average: common tokens have small ids in a vocabulary of 150 k. */
function idsFrom(seed: number, count: number): number[] {
  const random = randomFrom(seed);
  return Array.from({ length: count }, () => Math.floor(150_000 * random() ** 3));
}

function letters(random: () => number, count: number): string {
  return Array.from({ length: count }, () => String.fromCharCode(97 + Math.floor(random() * 26))).join("");
}

/** mulberry32: the same numbers on both sides. */
function randomFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
