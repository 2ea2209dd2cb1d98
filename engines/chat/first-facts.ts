/** The first probe of every server with a chat template: which models it serves, and what its template does. */
import { z } from "zod";
import type { Engine, EngineFacts, TokenizeSource } from "../engine.ts";
import type { EngineClient } from "../http/engine-client.ts";
import { fingerprints, roleMapping, rolePlaces, textLists } from "./template-facts.ts";

/** `model` is null where none is served; then the probe ends. Throws `engine_unreachable`. */
export async function firstFacts(
  engine: Pick<Engine, "name" | "baseUrl"> & Required<Pick<Engine, "tokenize">>,
  client: EngineClient,
  signal: AbortSignal,
): Promise<{ facts: EngineFacts; model: string | null }> {
  const models = ModelList.parse(await client.json("GET", "/v1/models", undefined, signal)).data;
  const model = models[0];
  const facts: EngineFacts = {
    engine: engine.name,
    base_url: engine.baseUrl,
    version: null,
    models: models.map((one) => one.id),
    max_model_len: model?.max_model_len ?? null,
    token_ids: false,
    logprobs: false,
    logprob_semantics: null,
    token_in: false,
    role_mapping: {},
    missing: null,
  };
  if (!model) {
    const missing = `the engine at ${engine.baseUrl} serves no model: GET /v1/models answered an empty list`;
    return { facts: { ...facts, missing }, model: null };
  }
  const tokenize = (source: TokenizeSource) => engine.tokenize(model.id, source, signal);
  facts.role_mapping = roleMapping(await rolePlaces(tokenize));
  facts.text_lists = await textLists(tokenize);
  facts.fingerprints = await fingerprints(tokenize);
  return { facts, model: model.id };
}

const ModelList = z.looseObject({ data: z.array(z.looseObject({ id: z.string(), max_model_len: z.number().int().nullish() })) });
