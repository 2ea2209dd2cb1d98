/** `POST /v1/chat/completions` in vLLM's shapes, streamed and whole. */

import { randomBytes } from "node:crypto";
import type { PracticeExchange } from "./exchange.ts";
import { score } from "./generation.ts";
import { askedForm } from "./grammar/asked-form.ts";
import type { PracticeModel } from "./model/practice-model.ts";
import { expandPictures, picturesOf } from "./pictures.ts";
import { ChatRequest, knownId, parseBody, room, toSampling } from "./requests.ts";
import { renderChat } from "./template.ts";
import { toPromptLogprobs } from "./text-completions.ts";
import { encode } from "./tokenizer/vocabulary.ts";
import { type Counted, readTurn, type TokenPiece, toLogprob, toNumberedLogprob, toUsage } from "./turn.ts";
import { type TurnDelta, TurnParser } from "./turn-parser.ts";

export async function chatCompletions(model: PracticeModel, exchange: PracticeExchange): Promise<void> {
  const request = parseBody(ChatRequest, exchange.body);
  model.check(request.model);
  model.checkListed({ top_logprobs: request.top_logprobs, prompt_logprobs: request.prompt_logprobs });
  const tools = request.tool_choice === "none" ? [] : (request.tools ?? []);
  const given = request.kv_transfer_params?.prompt_token_ids;
  const pictures = picturesOf(request.messages);
  // As vLLM does it: beside pictures the ids are left out without a word.
  const unexpanded = given && pictures.length === 0 ? given.map(knownId) : encode(renderChat(request.messages, request.tools ?? []));
  const { ids: promptIds, modelIds } = expandPictures(unexpanded, pictures);
  const usage: Counted = { prompt_tokens: promptIds.length, completion_tokens: 0, cached_tokens: 0 };
  const maxTokens = room(promptIds.length, model.maxModelLen, request.max_completion_tokens ?? request.max_tokens);
  const generation = {
    promptIds: modelIds,
    sampling: toSampling(request, request.logprobs ? (request.top_logprobs ?? 0) : 0),
    maxTokens,
    seed: request.seed ?? model.nextSeed(),
    stops: request.stop,
    stopTokenIds: request.stop_token_ids ?? [],
    choices: request.structured_outputs?.choice ?? null,
    form: askedForm(request),
    signal: exchange.signal,
  };
  const { policy } = model;
  const turn = { request, promptIds, usage, pieces: readTurn(policy, generation, usage), tools: tools.length > 0 };
  const object = request.stream ? "chat.completion.chunk" : "chat.completion";
  const head = { id: `chatcmpl-${exchange.requestId}`, object, created: Math.floor(Date.now() / 1000), model: model.name };
  if (request.stream) return exchange.stream(chunks(turn, head));
  const promptLogprobs =
    typeof request.prompt_logprobs === "number"
      ? toPromptLogprobs(await score(policy, modelIds, request.prompt_logprobs, exchange.signal))
      : null;
  exchange.json(200, { ...(await whole(turn, head)), prompt_logprobs: promptLogprobs });
}

type PracticeTurn = { request: ChatRequest; promptIds: number[]; usage: Counted; pieces: AsyncGenerator<TokenPiece>; tools: boolean };
type ChunkHead = { id: string; object: string; created: number; model: string };

/** The role first, then every token in a chunk of its own, even where its text waits: the ids add up to what was sampled. */
async function* chunks({ request, promptIds, usage, pieces, tools }: PracticeTurn, head: ChunkHead): AsyncGenerator<unknown> {
  const chunk = (choices: unknown[], more = {}) => ({ ...head, choices, ...more });
  const ids = request.return_token_ids === true;
  yield chunk([{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }], {
    prompt_token_ids: ids ? promptIds : null,
    prompt_text: null,
  });
  const reader = new TurnReader(tools);
  for await (const piece of pieces) {
    const deltas = reader.read(piece);
    const finish = piece.finish && { finish_reason: reader.finishReason, stop_reason: piece.finish.stop };
    const count = Math.max(1, deltas.length);
    for (let at = 0; at < count; at += 1) {
      const token = at === 0 ? [piece] : [];
      yield chunk([
        {
          index: 0,
          delta: reader.toWire(deltas[at]),
          logprobs: at === 0 ? toLogprobs(request, token) : null,
          finish_reason: null,
          ...(at === count - 1 && finish),
          token_ids: ids ? token.map((one) => one.token.id) : null,
        },
      ]);
    }
  }
  if (request.stream_options?.include_usage) yield chunk([], { usage: withReasoning(usage, reader) });
}

async function whole({ request, promptIds, usage, pieces, tools }: PracticeTurn, head: ChunkHead): Promise<Record<string, unknown>> {
  const reader = new TurnReader(tools);
  const read: TokenPiece[] = [];
  const deltas: TurnDelta[] = [];
  for await (const piece of pieces) {
    read.push(piece);
    deltas.push(...reader.read(piece));
  }
  const ids = request.return_token_ids === true;
  return {
    ...head,
    choices: [
      {
        index: 0,
        message: toMessage(deltas),
        logprobs: toLogprobs(request, read),
        finish_reason: reader.finishReason,
        stop_reason: read.at(-1)?.finish?.stop ?? null,
        token_ids: ids ? read.map(({ token }) => token.id) : null,
        routed_experts: null,
      },
    ],
    service_tier: null,
    system_fingerprint: null,
    usage: withReasoning(usage, reader),
    prompt_token_ids: ids ? promptIds : null,
    prompt_text: null,
    kv_transfer_params: null,
    metrics: null,
  };
}

/** Text to deltas, and what the turn came to. */
export class TurnReader {
  readonly #parser: TurnParser;
  #calls = 0;
  #sent = 0;
  #finish: "stop" | "length" | null = null;
  reasoningTokens = 0;

  constructor(tools: boolean) {
    this.#parser = new TurnParser({ tools });
  }

  read(piece: TokenPiece): TurnDelta[] {
    const deltas = this.#parser.feed(piece.text);
    if (this.#parser.reasoning || deltas.some((delta) => delta.type === "reasoning")) this.reasoningTokens += 1;
    if (piece.finish !== null) deltas.push(...this.#parser.finish());
    this.#finish = piece.finish?.reason ?? null;
    this.#calls += deltas.filter((delta) => delta.type === "tool_call").length;
    return deltas;
  }

  get finishReason(): string {
    return this.#finish === "stop" && this.#calls > 0 ? "tool_calls" : (this.#finish ?? "stop");
  }

  /** A tool call is sent in one piece: half a call looks like text. */
  toWire(delta: TurnDelta | undefined): Record<string, unknown> {
    if (delta === undefined) return {};
    if (delta.type === "content") return { content: delta.text };
    if (delta.type === "reasoning") return { reasoning: delta.text };
    const call = { ...toToolCall(delta), index: this.#sent };
    this.#sent += 1;
    return { content: null, tool_calls: [call] };
  }
}

export function toMessage(deltas: readonly TurnDelta[]): Record<string, unknown> {
  const textOf = (type: "content" | "reasoning") => deltas.map((delta) => (delta.type === type ? delta.text : "")).join("");
  const calls = deltas.filter((delta) => delta.type === "tool_call").map(toToolCall);
  const content = textOf("content");
  return {
    role: "assistant",
    content: content === "" && calls.length > 0 ? null : content,
    refusal: null,
    annotations: null,
    audio: null,
    function_call: null,
    ...(calls.length > 0 && { tool_calls: calls }),
    reasoning: textOf("reasoning") || null,
  };
}

function toToolCall(call: { name: string; arguments: string }) {
  const id = `chatcmpl-tool-${randomBytes(8).toString("hex")}`;
  return { id, type: "function", function: { name: call.name, arguments: call.arguments } };
}

function toLogprobs(request: ChatRequest, pieces: readonly TokenPiece[]): unknown {
  if (!request.logprobs) return null;
  const top = request.top_logprobs ?? 0;
  const toWire = request.return_tokens_as_token_ids ? toNumberedLogprob : toLogprob;
  return { content: pieces.map(({ token }) => ({ ...toWire(token), top_logprobs: token.top.slice(0, top).map(toWire) })) };
}

function withReasoning(usage: Counted, reader: TurnReader): Record<string, unknown> {
  return { ...toUsage(usage), completion_tokens_details: { reasoning_tokens: reader.reasoningTokens } };
}
