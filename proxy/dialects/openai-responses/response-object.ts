/** The `response` object that stands in lifecycle events and is the whole answer without streaming. */
import type { AlidadeError } from "../../../base/errors.ts";
import type { Usage } from "../../../base/schema/message.ts";
import type { AnswerContext } from "../dialect.ts";
import { comeBackAfterSeconds } from "../error-answer.ts";
import { conversationIdOf, responseId } from "./stored-id.ts";

/**
 * Repeats the request's small fields, as the API does. Not its tools and instructions: with an agent they are tens of
 * kilobytes, three times a stream, and no client reads them back.
 */
export function responseObject(context: AnswerContext, fields: Record<string, unknown>): Record<string, unknown> {
  const { native } = context;
  return {
    id: responseId(context.call_id),
    object: "response",
    created_at: context.created,
    background: false,
    ...(native.conversation != null && { conversation: { id: conversationIdOf(native.conversation) } }),
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: native.max_output_tokens ?? null,
    metadata: native.metadata ?? {},
    model: context.model,
    parallel_tool_calls: native.parallel_tool_calls ?? true,
    previous_response_id: native.previous_response_id ?? null,
    prompt_cache_key: native.prompt_cache_key ?? null,
    reasoning: native.reasoning ?? null,
    store: native.store ?? true,
    temperature: native.temperature ?? null,
    text: native.text ?? { format: { type: "text" } },
    tool_choice: native.tool_choice ?? "auto",
    tools: [],
    top_p: native.top_p ?? null,
    truncation: native.truncation ?? "disabled",
    usage: null,
    ...fields,
  };
}

/**
 * Null as a whole where the engine did not count. The two details are demanded as numbers by clients that add them up;
 * where the engine did not say, 0 stands for "none known" here, and null stays on the record.
 */
export function usageOf(usage: Usage): Record<string, unknown> | null {
  if (usage.prompt_tokens === null || usage.sampled_tokens === null) return null;
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: { cached_tokens: usage.cached_tokens ?? 0 },
    output_tokens: usage.sampled_tokens,
    output_tokens_details: { reasoning_tokens: usage.reasoning_tokens ?? 0 },
    total_tokens: usage.prompt_tokens + usage.sampled_tokens,
  };
}

/**
 * The error of `response.failed`. A stream has no status, so the code must say what a client should do:
 * `invalid_prompt` is the one that means "the same request will fail again"; our own code is in front of the message.
 */
export function failure(error: AlidadeError): { code: string; message: string } {
  if (error.code === "context_length_exceeded") return { code: error.code, message: error.message };
  if (error.status === 429) return { code: "rate_limit_exceeded", message: `${error.message}. ${comeBack(error)}` };
  const retryable = error.owner === "infrastructure";
  return { code: retryable ? "server_error" : "invalid_prompt", message: `${error.code}: ${error.message}` };
}

/** A stream has no header for it either: Codex reads this sentence. */
function comeBack(error: AlidadeError): string {
  return `Please try again in ${comeBackAfterSeconds(error) ?? 1}s.`;
}
