/**
 * An inference server, as the proxy sees it. Two axes, two folders: a dialect knows the harness side, an engine the
 * other side, and they meet in the neutral request and the events below.
 */
import type { FinishReason, Message, Sampling, Tool, ToolChoice, Usage } from "../schema/message.ts";
import type { LogprobSemantics } from "../schema/session-log.ts";

/** What is asked of an engine. Effective sampling only: forcing and policy are decided before this point. */
export type SampleRequest = {
  /** The engine's own name of the model. */
  model: string;
  messages: Message[];
  tools: Tool[];
  tool_choice: ToolChoice | null;
  sampling: Sampling;
  /** Token-in: the exact prompt. The messages are then only for the engine's parsers. */
  prompt_ids?: number[];
  /** Ours, sent as the request id where the engine takes one. */
  call_id: string;
};

/**
 * What an engine yields, in this order: `accepted` once, then any number of the middle ones, then `end` once.
 * A failure is thrown as an AlidadeError (`engine_unreachable`, `engine_error`, `context_length_exceeded`, …).
 */
export type SampleEvent =
  /** The engine took the request: its status is known, errors from here on are mid-stream. */
  | { type: "accepted"; status: number }
  | { type: "prompt"; token_ids: number[] }
  | { type: "text-delta"; text: string }
  | { type: "reasoning-delta"; text: string }
  /** One whole tool call; `arguments` is the raw string as the engine's parser cut it out. */
  | { type: "tool-call"; id: string; name: string; arguments: string }
  /** Sampled ids with one logprob each (nats; null where that one is missing). */
  | { type: "tokens"; token_ids: number[]; logprobs: (number | null)[] }
  | {
      type: "end";
      finish_reason: FinishReason;
      stop: string | number | null;
      usage: Usage;
      engine_model: string | null;
    };

/** What a probe found. `missing` is a sentence that names the flag that would fix it. */
export type EngineFacts = {
  engine: string;
  base_url: string;
  version: string | null;
  models: string[];
  /** Prompt tokens plus sampled tokens; null is unknown. */
  max_model_len: number | null;
  token_ids: boolean;
  logprobs: boolean;
  logprob_semantics: LogprobSemantics["kind"];
  token_in: boolean;
  /** Roles that the served template drops or refuses, and the role that is sent in their place. */
  role_mapping: Record<string, string>;
  missing: string | null;
};

export interface Engine {
  readonly name: string;
  readonly baseUrl: string;
  /** Asks the server what it can do, with a one-token request. Throws `engine_unreachable`. */
  probe(signal: AbortSignal): Promise<EngineFacts>;
  /** Samples one turn. Leaving the iteration early, or the signal, cancels the request at the engine. */
  sample(request: SampleRequest, signal: AbortSignal): AsyncIterable<SampleEvent>;
  /** Token ids of a conversation without generating, for token counting. */
  countTokens?(request: Pick<SampleRequest, "model" | "messages" | "tools">, signal: AbortSignal): Promise<number>;
  /** Text of token ids, special tokens shown. */
  detokenize?(model: string, tokenIds: number[], signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

/** How an engine is made: the object that stands in the registry. */
export interface EngineKind {
  readonly name: string;
  readonly title: string;
  create(options: { baseUrl: string; apiKey: string | null }): Engine;
}
