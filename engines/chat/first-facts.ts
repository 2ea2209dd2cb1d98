/** The first probe of every server with a chat template: which models it serves, and what its template does. */
import type { Engine, EngineFacts, TokenizeSource } from "../engine.ts";
import type { EngineClient } from "../http/engine-client.ts";
import { expertsOf, type ModelExperts } from "./experts.ts";
import { servedModels } from "./served-models.ts";
import { fingerprints, roleMapping, rolePlaces, textLists } from "./template-facts.ts";

/**
 * `model` is null where none is served; then the probe ends. `loadedFrom`: the model's folder or name, if the list of models does not
 * tell it. Throws `engine_unreachable`.
 */
export async function firstFacts(
  engine: Pick<Engine, "name" | "baseUrl"> & Required<Pick<Engine, "tokenize">>,
  client: EngineClient,
  signal: AbortSignal,
  loadedFrom: string | null = null,
): Promise<{ facts: EngineFacts; model: string | null; experts: ModelExperts | null }> {
  const { models, adapters, maxModelLen, root } = await servedModels(client, signal);
  const [model] = models;
  const facts: EngineFacts = {
    engine: engine.name,
    base_url: engine.baseUrl,
    version: null,
    models,
    adapters,
    max_model_len: maxModelLen,
    token_ids: false,
    logprobs: false,
    logprob_semantics: null,
    token_in: false,
    role_mapping: {},
    missing: null,
  };
  if (model === undefined) {
    const missing = `the engine at ${engine.baseUrl} serves no model: GET /v1/models answered an empty list`;
    return { facts: { ...facts, missing }, model: null, experts: null };
  }
  const tokenize = (source: TokenizeSource) => engine.tokenize(model, source, signal);
  facts.role_mapping = roleMapping(await rolePlaces(tokenize));
  facts.text_lists = await textLists(tokenize);
  const experts = await expertsOf(loadedFrom ?? root);
  if (experts !== null) facts.experts = experts.count;
  facts.fingerprints = await fingerprints(tokenize);
  return { facts, model, experts };
}
