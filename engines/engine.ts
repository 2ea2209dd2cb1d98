/**
 * An inference server, as the proxy sees it. Two axes, two folders: a dialect knows the harness side, an engine the
 * other side, and they meet in the neutral request and the events below.
 */

import type { RoutingReason, RoutingType, SupportReason } from "../base/schema/log/token-numbers.ts";
import type { FinishReason, Message, Prompt, Role, Sampling, Tool, ToolChoice, Usage } from "../base/schema/message.ts";
import type { SampledToken } from "../base/schema/sampled-token.ts";
import type { LogprobSemantics, WeightSpan } from "../base/schema/session-log.ts";
import type { IdText } from "../base/tokens/id-text.ts";
import type { ImageSpan, PictureTokens } from "../base/tokens/image-spans.ts";
import type { SpelledToken } from "./chat/spelled-pieces.ts";

/** A request to an engine. It holds the effective sampling: forcing and policy are decided before. */
export type SampleRequest = {
  /** The engine's own name of the model. */
  model: string;
  messages: Message[];
  /** Sampled on as it stands, instead of messages and without any template. Only for engines that say `takesPrompts`. */
  prompt?: Prompt;
  tools: Tool[];
  tool_choice: ToolChoice | null;
  sampling: Sampling;
  /** Token-in: the exact prompt, with one pad for each picture. The messages are then only for the engine's parsers and the pictures. */
  prompt_ids?: IdText;
  /** Ours, sent as the request id where the engine takes one. */
  call_id: string;
  /** A reader follows the stream, so every token is sent as soon as it is sampled. Absent: several tokens may come together. */
  live?: boolean;
  /** Its `tokens` events tell the tokens too, with so many alternatives each. Only for engines that say `tellsTokens`. */
  token_logprobs?: { top: number };
  /** Prefixes are shared only under the same salt: it is another one after every weight update, so that new weights find no old cache. */
  cache_salt?: string;
  /** Number of first prompt tokens whose experts the engine may leave out: an earlier call has them. */
  routing_start?: number;
  /** Its `tokens` events tell which tokens the sampling kept. Only for engines whose probe found `support`. */
  support?: boolean;
  /** Is told the texts of sampled tokens that it lacks. Engines that send no texts leave it alone. */
  texts?: TokenTexts;
};

/** Where texts of tokens are kept. Neither method throws. */
export type TokenTexts = {
  lacks(id: number): boolean;
  /** `bytes` null: the text is not this token's own, or a part of a character that the engine does not tell. */
  keep(tokens: readonly Pick<SampledToken, "id" | "text" | "bytes">[]): void;
};

/**
 * What an engine yields, in this order: `accepted` once, then any number of the middle ones, then `end` once.
 * A failure is thrown as an AlidadeError (`engine_unreachable`, `engine_error`, `context_length_exceeded`, …).
 */
export type SampleEvent =
  /** The engine took the request: its status is known, errors from here on are mid-stream. */
  | { type: "accepted"; status: number }
  /**
   * `text`: the ids as they arrived, separated by commas. With it, the ids are parsed on first read, and both must be used
   * before `sampleInto` goes on: the next prompt reuses the memory.
   */
  | { type: "prompt"; readonly token_ids: number[]; text?: Buffer }
  | { type: "text-delta"; text: string }
  | { type: "reasoning-delta"; text: string }
  /** One whole tool call; `arguments` is the raw string as the engine's parser cut it out. */
  | { type: "tool-call"; id: string; name: string; arguments: string }
  /** Sampled ids with one logprob each (nats; null where that one is missing). `tokens`: one for each id, where they were asked for. */
  | { type: "tokens"; token_ids: number[]; logprobs: (number | null)[]; tokens?: SampledToken[]; support?: TokenSupport[] }
  /** null: the engine told experts, but not as many as the answer's tokens have, or in another encoding. */
  | { type: "routing"; routing: RoutedExperts | null }
  /** Where the pads of each picture stand in the prompt, in the order of the request. Absent: the engine does not tell. */
  | { type: "images"; spans: ImageSpan[] }
  | {
      type: "end";
      finish_reason: FinishReason;
      stop: string | number | null;
      usage: Usage;
      engine_model: string | null;
      /** Evidence of the policy: the engine's own names of the weights that sampled the turn. Absent: it reports none. */
      weights?: WeightSpan[];
      /** Why ids, logprobs and counts of this answer do not belong together. Nothing of it may be trained then. */
      misaligned?: string;
    };

/**
 * Which experts the tokens took. Has one row for each token of prompt and sample, from token `start` on. A row has `top_k` numbers for
 * each layer, in the order of the layers; they are 0 if the layer has no experts. The last sampled token has no row.
 */
export type RoutedExperts = { start: number; rows: number; layers: number; top_k: number; dtype: RoutingType; bytes: Buffer };

/** The ids that `top_p`, `top_k` and `min_p` kept at the place of one sampled token, or why they are not known. */
export type TokenSupport = readonly number[] | Extract<SupportReason, "cut_short" | "misfit">;

/** not_supported: the server has no such route; failed: it has, and kept what it has, as servers do while requests are in flight. */
export type PrefixReset = "reset" | "not_supported" | "failed";

/**
 * Names of the models that a server takes calls for. `adapters`: those of them that modify another model's weights, such as
 * LoRA adapters.
 */
export type ServedModels = { models: string[]; adapters: string[] };

/** What a probe found. `missing` is a sentence that names the flag that would fix it. */
export type EngineFacts = {
  engine: string;
  base_url: string;
  version: string | null;
  models: string[];
  /** The adapters among `models`; each has weights of its own. Absent: the server does not report them. */
  adapters?: string[];
  /** Prompt tokens plus sampled tokens; null is unknown. */
  max_model_len: number | null;
  token_ids: boolean;
  logprobs: boolean;
  logprob_semantics: LogprobSemantics["kind"];
  /** `prompt_ids` of a request are taken as they are, and the answer is read as chat would read it: seen to work. */
  token_in: boolean;
  /**
   * Roles that the served template drops or refuses, and the role that is sent in their place. A key `system (later)`
   * is the role after the conversation has begun; it is looked up after the plain one.
   */
  role_mapping: Record<string, string>;
  /**
   * Roles whose served template prints each text of a list in full, with its own separators: their texts are sent as a
   * list. The texts of all other roles are joined by line breaks, also where the template could not be probed.
   */
  text_lists?: Role[];
  missing: string | null;
  /** What the model makes of a picture. Absent: it takes none, or that is not known. */
  images?: ServedPictures;
  /** Why it is not known, and what would tell it. */
  images_missing?: string;
  /** Why there is no token-in, and what would give it. */
  token_in_missing?: string;
  /** Whether logprobs under a grammar hold under its mask (a forced token has 0.0). null: unknown. */
  grammar_logprobs?: "masked" | "unmasked" | null;
  /** The engine's own name of the weights that it serves now. */
  weight_version?: string | null;
  /** Number of experts of the model; 0: it has none. Absent: unknown. */
  experts?: number;
  /**
   * For which answers the server tells the experts of the tokens: `all`, or those of conversations that no client follows. It is
   * never asked for prompts with pictures. Absent: the probe did not see this.
   */
  routing?: "all" | "not_live";
  /** Why the server is not asked for experts although it tells them. */
  routing_missing?: RoutingReason;
  /**
   * The server tells which tokens the sampling kept, and its logprobs are then those over them. `most`: the largest `top_k` for which
   * it does. `bounded`: it refuses a request without a `top_k` that asks for them. Absent: the probe did not see it.
   */
  support?: { most: number; bounded: boolean };
  /** Hash of the token ids of a fixed conversation, `tokenizer` of fixed texts: two servers that agree, render alike. */
  fingerprints?: { template: string | null; tokenizer: string | null };
};

/** `token_in`: `prompt_ids` with one pad a picture are taken beside the pictures, where no client follows the stream. */
export type ServedPictures = PictureTokens & { token_in: boolean };

/** Pictures of a prompt that is scored: where their pads stand, and the pictures themselves. */
export type ScoredImages = { spans: readonly ImageSpan[]; urls: readonly string[] };

/** A token that was scored, and the likeliest ones at its place, the likeliest first; none where nothing comes before it. */
export type RankedToken = { logprob: number | null; top: { ids: number[]; logprobs: number[] } };

export interface Engine {
  readonly name: string;
  readonly baseUrl: string;
  /** A request may have a `prompt` instead of messages. */
  readonly takesPrompts?: boolean;
  /** A request may have `token_logprobs`. */
  readonly tellsTokens?: boolean;
  /** True when the engine restricts every call that has begun to a grammar of the tools, whatever the request. */
  readonly holdsToolsToGrammar?: boolean;
  /** Asks the server what it can do, with a one-token request. Throws `engine_unreachable`. */
  probe(signal: AbortSignal): Promise<EngineFacts>;
  /** Lists what the server serves now: it may load adapters while it runs. Absent: its list does not change. */
  models?(signal: AbortSignal): Promise<ServedModels>;
  /** Samples one turn. Leaving the iteration early, or the signal, cancels the request at the engine. */
  sample(request: SampleRequest, signal: AbortSignal): AsyncIterable<SampleEvent>;
  /**
   * The same without a wait between two tokens: `take` gets at once all that one read of the socket brought. Resolves after
   * the `end`, and throws what `take` throws. Absent: `sample` is all there is. With `sample` alone, and a prompt's text copied,
   * vLLM's engine makes the proxy take 1.28 × the CPU a token of 1 000 live streams, and 1.2 × a call of 120 kB.
   */
  sampleInto?(request: SampleRequest, signal: AbortSignal, take: (events: SampleEvent[]) => void): Promise<void>;
  /** Token ids of a conversation without generating, for token counting. */
  countTokens?(request: Pick<SampleRequest, "model" | "messages" | "tools">, signal: AbortSignal): Promise<number>;
  /** Token ids of a text or of a conversation (with the generation prompt), by the server's own tokenizer and template. */
  tokenize?(model: string, source: TokenizeSource, signal: AbortSignal): Promise<number[]>;
  /** A conversation as the server's own template prints it. Nothing is generated. */
  render?(model: string, source: RenderSource, signal: AbortSignal): Promise<Rendered>;
  /** The engine's own name of the weights that it serves now; null where it has none. Throws where it cannot be asked. */
  weightVersion?(signal: AbortSignal): Promise<string | null>;
  /** Empties the prefix cache: its keys and values were computed by the old weights. Absent: the server has no such route. */
  resetPrefixCache?(signal: AbortSignal): Promise<PrefixReset>;
  /** How many requests the server is at; null where it does not say. */
  running?(signal: AbortSignal): Promise<number | null>;
  /**
   * Logprob of each of these tokens after those before it, from a prefill: in nats, at temperature 1, without a mask;
   * null for the first. For audits.
   */
  score?(model: string, tokenIds: number[], signal: AbortSignal, images?: ScoredImages): Promise<(number | null)[]>;
  /**
   * Each token of a text and its own bytes, by the server's tokenizer. Empty where its pieces do not spell the text. Absent: the
   * server tells no pieces.
   */
  spell?(model: string, text: string, signal: AbortSignal): Promise<SpelledToken[]>;
  /** The same with the `top` likeliest tokens of each place. Absent: the server, or its adapter, does not tell them. */
  scoreTop?(model: string, tokenIds: number[], top: number, signal: AbortSignal, images?: ScoredImages): Promise<RankedToken[]>;
  /** Text of token ids, special tokens shown. */
  detokenize?(model: string, tokenIds: number[], signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

/** The input of tokenize. `verbatim`: no role is mapped and no texts are joined; the probe needs the template's own behaviour. */
export type TokenizeSource = { text: string } | { messages: Message[]; tools: Tool[]; verbatim?: boolean };

export type RenderSource = {
  messages: Message[];
  tools: Tool[];
  /** With the generation prompt behind the last message, or without. */
  generation: boolean;
  /** The ids are enough; `text` is empty then. */
  ids_only?: boolean;
  /** For templates that print it, where the server's tokenizer route takes it (SGLang's does). */
  tool_choice?: ToolChoice | null;
  /** The call's own, for what templates read of it: `reasoning_effort`, `chat_template_kwargs`. */
  sampling?: Sampling;
};

/** The template's prompt, twice, with one pad for each picture: `text` has special tokens shown. */
export type Rendered = { token_ids: number[]; text: string };

/** How an engine is made: the object that stands in the registry. */
export interface EngineKind {
  readonly name: string;
  readonly title: string;
  /** The URL that is used where the configuration has none. A hosted engine has one address. */
  readonly defaultUrl?: string;
  create(options: { baseUrl: string; apiKey: string | null }): Engine;
}
