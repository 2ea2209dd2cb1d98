/**
 * The neutral conversation: what every dialect is translated to and from, and what the session log stores.
 * Order is meaning: messages and parts stay in the order of the wire.
 */
import { z } from "zod";
import type { SampledToken } from "./sampled-token.ts";

/** A JSON object as it is. zod's own record would drop a key named `__proto__`, which a model may have written. */
export const JsonObject = z.custom<Record<string, unknown>>(
  (value) => value !== null && typeof value === "object" && !Array.isArray(value),
  "expected object",
);

export type JsonObject = z.infer<typeof JsonObject>;

export const TextPart = z.strictObject({ type: z.literal("text"), text: z.string() });

export const ReasoningPart = z.strictObject({
  type: z.literal("reasoning"),
  text: z.string(),
  /** The opaque value that travels with it on the wire (`signature`, `encrypted_content`); ours names the call. */
  carrier: z.string().optional(),
});

export const ToolCallPart = z.strictObject({
  type: z.literal("tool_call"),
  /** In a stored turn the engine's own id; in a request the id that the harness sent. */
  id: z.string(),
  name: z.string(),
  /** The raw string as sampled or as sent: JSON when all went well, and never repaired. */
  arguments: z.string(),
  /** `custom` is a freeform tool (Responses): the raw text is its input. */
  kind: z.enum(["function", "custom"]).default("function"),
});

/** A picture as its bytes arrived. They stand once, in `media/<sha256>` beside the session's log, and never in a record. */
export const StoredPicture = z.strictObject({
  type: z.literal("image"),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** As the harness declared it. The bytes may be of another kind. */
  media_type: z.string(),
  /** How many bytes there are. */
  bytes: z.number().int().positive(),
  width: z.number().int().positive(),
  height: z.number().int().positive(),
  detail: z.string().optional(),
});
export type StoredPicture = z.infer<typeof StoredPicture>;

/** A picture under the URL that the harness sent: one that is not fetched, or whose bytes are of no kind that is stored. */
export const LinkedPicture = z.strictObject({
  type: z.literal("image"),
  /** A data: URL, or an http(s) URL. Older releases wrote every picture so. */
  url: z.string(),
  detail: z.string().optional(),
});
export type LinkedPicture = z.infer<typeof LinkedPicture>;

export const ImagePart = z.union([StoredPicture, LinkedPicture]);
export type ImagePart = z.infer<typeof ImagePart>;

export const ToolResultPart = z.strictObject({
  type: z.literal("tool_result"),
  call_id: z.string(),
  content: z.array(z.union([TextPart, ImagePart])),
  is_error: z.boolean().default(false),
});

export const Part = z.union([z.discriminatedUnion("type", [TextPart, ReasoningPart, ToolCallPart, ToolResultPart]), ImagePart]);
export type Part = z.infer<typeof Part>;
/** What a content list of a request may hold. */
export type ContentPart = Extract<Part, { type: "text" | "image" }>;
export type ToolCallPart = z.infer<typeof ToolCallPart>;
export type ToolResultPart = z.infer<typeof ToolResultPart>;

export const Role = z.enum(["system", "developer", "user", "assistant", "tool"]);
export type Role = z.infer<typeof Role>;

export const Message = z.strictObject({
  role: Role,
  /** The speaker within the role (system, developer and user), where the harness names one; some templates print it. */
  name: z.string().optional(),
  parts: z.array(Part),
});
export type Message = z.infer<typeof Message>;

export const Tool = z.strictObject({
  name: z.string(),
  description: z.string().optional(),
  /**
   * JSON Schema of the arguments; null where the harness declared none, which templates print in another way than one
   * without properties. A custom tool is shown to the model as a function with one string, `input`.
   */
  parameters: JsonObject.nullable(),
  /** The same as the harness wrote it, where JavaScript writes its numbers in another way (0.0, bounds of 64 bits). */
  parameters_source: z.string().optional(),
  kind: z.enum(["function", "custom"]).default("function"),
  strict: z.boolean().optional(),
});
export type Tool = z.infer<typeof Tool>;

export const ToolChoice = z.union([z.enum(["auto", "none", "required"]), z.strictObject({ name: z.string() })]);
export type ToolChoice = z.infer<typeof ToolChoice>;

/** Sampling parameters that forbid or favour tokens, or may, beside penalties and cuts: under them no logprob is the policy's own. */
export const bendingParameters = [
  "logit_bias",
  "allowed_token_ids",
  "bad_words",
  "min_tokens",
  "thinking_token_budget",
  "watermarking",
  "vllm_xargs",
] as const;

/** Does one of them say more than nothing? */
export function isBent(sampling: Sampling): boolean {
  return bendingParameters.some((name) => {
    const value = sampling[name] ?? null;
    // No thought at all is a budget too; none is -1.
    if (name === "thinking_token_budget") return value !== null && value !== -1;
    return typeof value === "object" ? Object.keys(value ?? {}).length > 0 : value !== 0 && value !== false;
  });
}

/**
 * Sampling parameters under the engine's (vLLM's) names. Loose on purpose: engine extras such as
 * `structured_outputs` ride along under their own name and are recorded as they were sent.
 */
export const Sampling = z.looseObject({
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  top_k: z.number().optional(),
  min_p: z.number().optional(),
  max_tokens: z.number().int().positive().optional(),
  stop: z.array(z.string()).optional(),
  seed: z.number().int().optional(),
  presence_penalty: z.number().optional(),
  frequency_penalty: z.number().optional(),
  repetition_penalty: z.number().optional(),
  logit_bias: z.record(z.string(), z.number()).optional(),
  response_format: z.unknown().optional(),
  reasoning_effort: z.string().optional(),
  parallel_tool_calls: z.boolean().optional(),
});
export type Sampling = z.infer<typeof Sampling>;

/** A prompt that is the engine's as it stands, with no template around it: text, or the very token ids. */
export const Prompt = z.union([
  z.strictObject({ text: z.string() }),
  z.strictObject({ token_ids: z.array(z.number().int().nonnegative()) }),
]);
export type Prompt = z.infer<typeof Prompt>;

/** One LLM request after its dialect has been taken off. */
export type NeutralRequest = {
  model: string;
  messages: Message[];
  /** Instead of messages, which are empty then (legacy completions). */
  prompt?: Prompt;
  tools: Tool[];
  tool_choice: ToolChoice | null;
  /** The sampling of the request; the effective sampling is on the call. */
  sampling: Sampling;
  stream: boolean;
  /** The answer shows the sampled tokens with their logprobs, and so many of the likeliest others. Absent: it does not. */
  token_logprobs?: { top: number };
  /** Fields that the dialect could not map, kept for the record and for the answer's own shape. */
  native: Record<string, unknown>;
  /** Names of tools and fields that the model does not get (`proxy/dialects/left-out`). Absent: none. */
  omitted?: string[];
  /**
   * The earlier call that this request continues. All of that call's messages but the first `skip`, and its turn, follow
   * the first `head` messages of this request. Absent: the request holds the whole conversation.
   */
  continues?: { call_id: string; skip: number; head: number };
  /** The call that sampled the summary in this request. */
  compacted_in?: string;
};

export const FinishReason = z.enum(["stop", "tool_calls", "length", "content_filter", "abort", "error"]);
export type FinishReason = z.infer<typeof FinishReason>;

/** Token counts as the engine reported them; null is unknown, never zero. */
export const Usage = z.strictObject({
  prompt_tokens: z.number().int().nullable(),
  cached_tokens: z.number().int().nullable(),
  sampled_tokens: z.number().int().nullable(),
  reasoning_tokens: z.number().int().nullable(),
});
export type Usage = z.infer<typeof Usage>;

/** The model's output of one call, before a dialect writes it. */
export type Turn = {
  message: Message;
  finish_reason: FinishReason;
  /** The stop string or stop token id that ended it; null is the end-of-turn token or unknown. */
  stop: string | number | null;
  usage: Usage;
  /** All that were sampled. Absent: the request did not ask for them, or the engine did not tell them all. */
  tokens?: SampledToken[];
};

/** The concatenated text parts of a message: what a template prints as its content. */
export function textOf(message: Message): string {
  return message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

export function toolCallsOf(message: Message): ToolCallPart[] {
  return message.parts.filter((part) => part.type === "tool_call");
}
