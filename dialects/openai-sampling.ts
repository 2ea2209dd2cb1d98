/** What chat and legacy completions share: parameters of sampling, under OpenAI's names and vLLM's. */
import { z } from "zod";
import type { Sampling } from "../schema/message.ts";
import { checked, present } from "./edge.ts";

/** Their types, for the schema of a body. */
export const samplingFields = {
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.number().nullish(),
  min_p: z.number().nullish(),
  seed: z.number().int().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  repetition_penalty: z.number().nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  max_tokens: z.number().int().positive().nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
};

/** vLLM's own parameters that change what is sampled; they are passed on and recorded under their own names. */
const engineExtras = [
  "structured_outputs",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "chat_template_kwargs",
  "min_tokens",
  "stop_token_ids",
  "ignore_eos",
  "bad_words",
  "allowed_token_ids",
  "thinking_token_budget",
  "add_special_tokens",
] as const;

const asTheyAre = [...Object.keys(samplingFields).filter((key) => key !== "response_format"), ...engineExtras];

/** Keys of a body that `parseSampling` reads. */
export const samplingKeys = [...asTheyAre, "response_format", "stop"];

type SamplingFields = z.output<z.ZodObject<typeof samplingFields>> & Record<string, unknown>;

export function parseSampling(body: SamplingFields): Sampling {
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? undefined);
  const { response_format: format } = body;
  return {
    ...present(Object.fromEntries(asTheyAre.map((key) => [key, body[key]]))),
    ...present({
      stop: stop === undefined ? undefined : checked(z.array(z.string()), stop, "stop"),
      response_format: format?.type === "text" ? undefined : format,
    }),
  };
}
