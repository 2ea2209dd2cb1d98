/** Token counts as both of OpenAI's completions write them. */
import type { Usage } from "../../../base/schema/message.ts";

/** Null where the engine did not count: these APIs allow that it is left out. */
export function openaiUsage(usage: Usage): Record<string, unknown> | null {
  if (usage.prompt_tokens === null || usage.sampled_tokens === null) return null;
  return {
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.sampled_tokens,
    total_tokens: usage.prompt_tokens + usage.sampled_tokens,
    ...(usage.cached_tokens !== null && { prompt_tokens_details: { cached_tokens: usage.cached_tokens } }),
    ...(usage.reasoning_tokens !== null && { completion_tokens_details: { reasoning_tokens: usage.reasoning_tokens } }),
  };
}
