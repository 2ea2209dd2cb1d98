/** The models that a server lists: base models first, then adapters. */
import { z } from "zod";
import type { ServedModels } from "../engine.ts";
import type { EngineClient } from "../http/engine-client.ts";

/** `maxModelLen` and `root` (the folder or name that it was loaded from) belong to the first model. */
export async function servedModels(
  client: EngineClient,
  signal: AbortSignal,
): Promise<ServedModels & { maxModelLen: number | null; root: string | null }> {
  const { data } = ModelList.parse(await client.json("GET", "/v1/models", undefined, signal));
  // For an adapter, vLLM and SGLang name its base model in `parent`. Base models come first: unknown names mean the first model.
  const adapters = data.filter(({ id, parent }) => typeof parent === "string" && parent !== id);
  const whole = data.filter((one) => !adapters.includes(one));
  return {
    models: [...whole, ...adapters].map(({ id }) => id),
    adapters: adapters.map(({ id }) => id),
    root: whole[0]?.root ?? null,
    maxModelLen: (whole[0] ?? adapters[0])?.max_model_len ?? null,
  };
}

const ModelList = z.looseObject({
  data: z.array(
    z.looseObject({
      id: z.string(),
      root: z.string().nullish(),
      parent: z.string().nullish(),
      max_model_len: z.number().int().nullish(),
    }),
  ),
});
