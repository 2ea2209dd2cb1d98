/**
 * Writes session logs for tests as the proxy writes them: a small conversation machine with a tokenizer of one token a
 * word, a ChatML-like renderer, and an engine that samples what the test says. Every finished generation is also kept
 * as an exchange, written apart from the log: the witness that reconstruction is checked against.
 */

import type { z } from "zod";
import { hashOf, mintToolCallId } from "../../../base/schema/ids.ts";
import type { Message, Part, Tool } from "../../../base/schema/message.ts";
import type { Policy } from "../../../base/schema/policy.ts";
import type { CallBegun, CallFinished, Decoded, LogEntry, PromptPicture, Restored, WeightSpan } from "../../../base/schema/session-log.ts";
import type { RequestClass, SessionSpec } from "../../../base/schema/session-spec.ts";
import { SessionSpec as SessionSpecSchema } from "../../../base/schema/session-spec.ts";
import type { EngineExchange } from "../../../reconstruct/verify.ts";

export type CallOptions = {
  agent?: string;
  request_class?: z.infer<typeof RequestClass>;
  messages: Message[];
  tools?: Tool[];
  /** The prompt as the engine got it; default: the messages rendered. null: an engine without ids. */
  prompt?: number[] | null;
  /** The places of the pictures in the prompt, as the engine reported them. */
  media?: PromptPicture[];
  /** What the model says; its tokens are the words of it, then the stop token. */
  says?: Message;
  sampled?: number[] | null;
  logprobs?: (number | null)[] | null;
  grammar?: boolean;
  finish_reason?: CallFinished["finish_reason"];
  parent?: string | null;
  restored?: Restored[];
  /** cut: the client left; none: the process died before it was written; unfinished: it died while generating. */
  delivery?: "complete" | "cut" | "none" | "unfinished" | "error";
  error?: CallFinished["error"];
  decoded?: Pick<Decoded, "parent_call_id" | "same_text"> & Partial<Decoded>;
  /** Start and end of the generation, in ms after the session was opened; default one after the other. */
  begin?: number;
  finish?: number;
  policy?: Policy | null;
  policy_end?: Policy | null;
  policy_changed?: true;
  tokens_before_hold?: number;
  /** The engine's own word about which weights sampled which tokens. */
  weights?: WeightSpan[];
  tokenizer?: string;
  replayed_from?: string;
  /** Which of several engines. */
  engine?: string;
  /** In ms, as `begin`. */
  pauses?: { from: number; to: number }[];
};

export const endOfTurn = 2;

export class LogBuilder {
  readonly entries: LogEntry[] = [];
  /** By call id: what passed between proxy and engine, as an independent witness saw it. */
  readonly exchanges = new Map<string, EngineExchange>();
  readonly #vocabulary: Map<string, number>;
  /** Input ‖ output of each call: what later lists are stored against. */
  readonly #lists = new Map<string, { tokens: number[]; messages: Message[] }>();
  readonly #toolsSeen = new Set<string>();
  #time = 1000;
  #calls = 0;

  /** `vocabulary`: one that several logs share, as one tokenizer's. */
  constructor(spec: Partial<SessionSpec> = {}, vocabulary = new Map<string, number>()) {
    this.#vocabulary = vocabulary;
    this.entries.push({
      type: "opened",
      schema_version: 2,
      time: this.#time,
      session_id: "sestest",
      key_hash: "k",
      spec: SessionSpecSchema.parse({ purpose: "train", task_id: "task", group_id: "grp", sample_index: 0, rollout_id: "roll1", ...spec }),
      alidade_version: "0.0.0",
    });
  }

  /** Adds one call with all its entries and returns its id. */
  call(options: CallOptions): string {
    const call_id = `call${String(this.#calls).padStart(20, "0")}`;
    const begin = options.begin ?? this.#tick();
    const prompt = options.prompt === undefined ? this.prompt(options.messages) : options.prompt;
    this.entries.push(...this.#begun(call_id, begin, options));
    this.#calls++;
    if (options.delivery === "unfinished") this.#lists.set(call_id, { tokens: [], messages: options.messages });
    else this.#finish(call_id, prompt, options);
    return call_id;
  }

  /** One token a word; the same word is always the same token. */
  tokens(text: string): number[] {
    return text
      .split(/(?<=\s)/)
      .filter((word) => word !== "")
      .map((word) => {
        if (!this.#vocabulary.has(word)) this.#vocabulary.set(word, this.#vocabulary.size + 10);
        return this.#vocabulary.get(word) as number;
      });
  }

  /** The chat template: <role> words <end>, and the opening of the next assistant turn. */
  prompt(messages: Message[]): number[] {
    return [...messages.flatMap((message) => this.render(message)), ...this.tokens("<assistant> ")];
  }

  render(message: Message): number[] {
    return [...this.tokens(`<${message.role}> `), ...this.said(message)];
  }

  /** What the model samples to say this message, the stop token included. */
  said(message: Message): number[] {
    return [...message.parts.flatMap((part) => this.tokens(textOfPart(part))), endOfTurn];
  }

  #begun(call_id: string, time: number, options: CallOptions): LogEntry[] {
    const tools_hash = options.tools ? hashOf(options.tools) : null;
    const entries: LogEntry[] = [];
    if (options.tools && tools_hash !== null && !this.#toolsSeen.has(tools_hash)) {
      this.#toolsSeen.add(tools_hash);
      entries.push({ type: "tools", time, tools_hash, tools: options.tools });
    }
    const begun: CallBegun = {
      type: "call_begun",
      time,
      call_id,
      ordinal: this.#calls,
      dialect: "openai-chat",
      agent: options.agent ?? "main",
      request_class: options.request_class ?? "main",
      labels: {},
      model: "m",
      stream: true,
      messages: this.#delta(options.messages, (list) => list.messages, sameMessage),
      fingerprint: hashOf(options.messages.at(-1)),
      restored: options.restored ?? [],
      parent_call_id: options.parent ?? null,
      retry_of: null,
      tools_hash,
      tool_choice: null,
      requested_sampling: {},
      effective_sampling: { temperature: 1 },
      policy: options.policy === undefined ? { version: "v1", step: 1 } : options.policy,
      role_mapping: {},
      native: {},
    };
    return [...entries, begun];
  }

  #finish(call_id: string, prompt: number[] | null, options: CallOptions): void {
    const says = options.says ?? { role: "assistant" as const, parts: [{ type: "text" as const, text: "ok" }] };
    const sampled = options.sampled === undefined ? (prompt === null ? null : this.said(says)) : options.sampled;
    const logprobs = options.logprobs === undefined ? (sampled?.map((_, at) => -0.125 * (at + 1)) ?? null) : options.logprobs;
    const time = options.finish ?? this.#tick();
    const policy = options.policy === undefined ? { version: "v1", step: 1 } : options.policy;
    this.entries.push(
      {
        type: "tried",
        time,
        call_id,
        try: 1,
        engine: "e",
        engine_name: options.engine ?? null,
        policy,
        role_mapping: {},
        fingerprints: options.tokenizer === undefined ? null : { template: null, tokenizer: options.tokenizer },
        started: time - 1,
        first_token: time - 1,
        status: 200,
        error: null,
      },
      {
        type: "call_finished",
        time,
        call_id,
        prompt_ids: prompt === null ? null : this.#delta(prompt, (list) => list.tokens, Object.is),
        sampled_ids: sampled,
        logprobs,
        logprob_semantics: { kind: logprobs === null ? null : "raw", grammar: options.grammar ?? false },
        missing: sampled === null ? "the engine gives no token ids" : null,
        message: options.error ? null : says,
        finish_reason: options.finish_reason ?? "stop",
        stop: null,
        usage: { prompt_tokens: prompt?.length ?? 7, cached_tokens: null, sampled_tokens: sampled?.length ?? 5, reasoning_tokens: null },
        policy: options.policy_end === undefined ? policy : options.policy_end,
        engine: "e",
        engine_model: "m",
        ...(options.media && { media: options.media }),
        ...(options.policy_changed && { policy_changed: true }),
        ...(options.tokens_before_hold !== undefined && { tokens_before_hold: options.tokens_before_hold }),
        ...(options.weights && { weights: options.weights }),
        ...(options.replayed_from !== undefined && { replayed_from: options.replayed_from }),
        ...(options.pauses && { pauses: options.pauses }),
        error: options.error ?? null,
      },
    );
    const messages = options.error ? options.messages : [...options.messages, says];
    this.#lists.set(call_id, { tokens: prompt === null ? [] : [...prompt, ...(sampled ?? [])], messages });
    if (prompt !== null && sampled !== null)
      this.exchanges.set(call_id, { prompt_token_ids: [...prompt], token_ids: [...sampled], logprobs: logprobs && [...logprobs] });
    if (options.decoded)
      this.entries.push({ type: "decoded", time, call_id, position: 0, at: 0, parent_text: "", child_text: "", ...options.decoded });
    const delivery = options.delivery ?? "complete";
    if (delivery !== "none" && delivery !== "unfinished")
      this.entries.push({ type: "answered", time: time + 1, call_id, delivery, status: delivery === "error" ? 502 : 200 });
  }

  /** Against the best of the latest calls, as the proxy does it. */
  #delta<T>(
    items: T[],
    listOf: (list: { tokens: number[]; messages: Message[] }) => T[],
    same: (a: T, b: T) => boolean,
  ): { base_call_id: string | null; base_len: number; new: T[] } {
    let [base_call_id, base_len]: [string | null, number] = [null, 0];
    for (const [call_id, list] of [...this.#lists].slice(-4)) {
      const base = listOf(list);
      const parted = items.findIndex((item, at) => at >= base.length || !same(item, base[at] as T));
      const shared = parted === -1 ? items.length : parted;
      if (shared > 0 && shared >= base_len) [base_call_id, base_len] = [call_id, shared];
    }
    return { base_call_id, base_len, new: items.slice(base_len) };
  }

  #tick(): number {
    this.#time += 10;
    return this.#time;
  }
}

function textOfPart(part: Part): string {
  switch (part.type) {
    case "text":
      return `${part.text} `;
    case "reasoning":
      return `<think> ${part.text} </think> `;
    case "tool_call":
      return `<call> ${part.name} ${part.arguments} `;
    case "tool_result":
      return part.content.map((inner) => (inner.type === "text" ? `${inner.text} ` : "<image> ")).join("");
    case "image":
      return "<image> ";
  }
}

const sameMessage = (a: Message, b: Message) => a === b || JSON.stringify(a) === JSON.stringify(b);

export const system = (text: string): Message => ({ role: "system", parts: [{ type: "text", text }] });
export const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });
export const assistant = (...parts: (string | Part)[]): Message => ({
  role: "assistant",
  parts: parts.map((part) => (typeof part === "string" ? { type: "text", text: part } : part)),
});
export const thinking = (text: string): Part => ({ type: "reasoning", text });
export const toolCall = (id: string, args: string, name = "bash"): Part => ({
  type: "tool_call",
  id,
  name,
  arguments: args,
  kind: "function",
});
export const toolResult = (call_id: string, text: string): Message => ({
  role: "tool",
  parts: [{ type: "tool_result", call_id, content: [{ type: "text", text }], is_error: false }],
});

/** What the proxy notes when it recognises a turn by the tool-call id that we minted. */
export const recognised = (from_call_id: string, message_index: number, over: Partial<Restored> = {}): Restored => ({
  message_index,
  from_call_id,
  evidence: "tool_call_id",
  status: "identical",
  differences: [],
  ...over,
});

export { mintToolCallId };
