/** What chat and legacy completions share: parameters of sampling, under OpenAI's names and vLLM's. */
import { z } from "zod";
import type { Sampling } from "../../../base/schema/message.ts";
import { present } from "../edge.ts";
import { engineFields, engineKeys, parseEngineSampling } from "../engine-sampling.ts";

/** Their types, for the schema of a body. */
export const samplingFields = {
  ...engineFields,
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  max_tokens: z.number().int().positive().nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
};

/** Keys of a body that `parseSampling` reads. */
export const samplingKeys = [...Object.keys(samplingFields), ...engineKeys];

type SamplingFields = z.output<z.ZodObject<typeof samplingFields>> & Record<string, unknown>;

export function parseSampling(body: SamplingFields): Sampling {
  const { temperature, top_p, max_tokens, response_format: format } = body;
  return {
    ...present({ temperature, top_p, max_tokens }),
    ...parseEngineSampling(body),
    ...present({ response_format: format?.type === "text" ? undefined : format }),
  };
}
