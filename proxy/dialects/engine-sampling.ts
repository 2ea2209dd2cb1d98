/**
 * Parameters that clients of vLLM send beside what a vendor's own API has, under vLLM's names and on every route. What
 * changes the prompt or the sampling goes to the engine and on the record; what would part the text from its tokens, or
 * the prompt from what was sent, is refused. Its other fields ask for no other answer, and pass without effect.
 */
import { z } from "zod";
import type { Sampling } from "../../base/schema/message.ts";
import { checked, invalid, JsonObject, present } from "./edge.ts";

/** Their types, for the schema of a body. */
export const engineFields = {
  top_k: z.number().nullish(),
  min_p: z.number().nullish(),
  seed: z.number().int().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  repetition_penalty: z.number().nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  enable_thinking: z.boolean().nullish(),
};

/** The engine checks these itself. */
const engineExtras = [
  "structured_outputs",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "guided_whitespace_pattern",
  "guided_decoding_backend",
  "chat_template",
  "chat_template_kwargs",
  "documents",
  "media_io_kwargs",
  "mm_processor_kwargs",
  "min_tokens",
  "stop_token_ids",
  "ignore_eos",
  "bad_words",
  "allowed_token_ids",
  "thinking_token_budget",
  "add_special_tokens",
  "watermarking",
  "vllm_xargs",
] as const;

const asTheyAre = [...Object.keys(engineFields).filter((key) => key !== "enable_thinking"), ...engineExtras];

/** Keys of a body that `parseEngineSampling` maps. */
export const engineKeys = [...asTheyAre, "enable_thinking", "stop"];

/** Each field with its neutral value, and the reason why others are refused. */
const unsupported: Record<string, { unless: unknown[]; why: string }> = {
  skip_special_tokens: { unless: [true], why: "only true is supported: sent back as text, a special token is others" },
  spaces_between_special_tokens: { unless: [true], why: "only true is supported; leave it out" },
  include_stop_str_in_output: { unless: [false], why: "only false is supported: an answer ends before its stop string" },
  truncate_prompt_tokens: { unless: [], why: "a prompt is never cut; send a shorter conversation" },
  repetition_detection: { unless: [], why: "is not supported; leave it out" },
  logits_processors: { unless: [], why: "is not supported; leave it out" },
  prompt_logprobs: { unless: [], why: "is not supported: logprobs are given of sampled tokens only; leave it out" },
  prompt_token_ids: { unless: [], why: "is not supported; send messages, or the ids as the prompt of /v1/completions" },
};

/** Keys that it reads, and refuses unless they ask for nothing. */
export const refusedKeys = Object.keys(unsupported);

type EngineFields = z.output<z.ZodObject<typeof engineFields>> & Record<string, unknown>;

export function parseEngineSampling(body: EngineFields): Sampling {
  refuseUnsupported(body);
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? undefined);
  return {
    ...present(Object.fromEntries(asTheyAre.map((key) => [key, body[key]]))),
    ...present({
      stop: stop === undefined ? undefined : checked(z.array(z.string()), stop, "stop"),
      chat_template_kwargs: templateKwargs(body),
    }),
  };
}

function refuseUnsupported(body: Record<string, unknown>): void {
  for (const [field, { unless, why }] of Object.entries(unsupported)) {
    const value = body[field] ?? null;
    const asksForNothing = value === null || unless.includes(value) || (Array.isArray(value) && value.length === 0);
    if (!asksForNothing) throw invalid(field, why);
  }
}

/** Qwen's own API has the switch at the top of the body, where no inference server looks for it. */
function templateKwargs({ enable_thinking, chat_template_kwargs }: EngineFields): unknown {
  if (enable_thinking === null || enable_thinking === undefined) return chat_template_kwargs;
  return { enable_thinking, ...checked(JsonObject.nullish(), chat_template_kwargs, "chat_template_kwargs") };
}
