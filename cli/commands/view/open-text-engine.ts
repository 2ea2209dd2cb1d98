/** `alidade view --engine`: a server that is asked for the texts of tokens. Nothing is sampled beyond the probe's one token. */
import { AlidadeError } from "../../../base/errors.ts";
import { probeEngine } from "../../../proxy/pool/index.ts";
import type { TextEngine } from "../../../view/server/index.ts";
import { commandConfig } from "../flags/command-config.ts";
import { type EngineFlags, enginesOf } from "../flags/engine-flags.ts";
import { openEngines } from "../proxy/open-engine.ts";

export type OpenTextEngine = AsyncDisposable & { source: TextEngine };

/** Throws `config_invalid` if the server tells no texts, and `engine_unreachable`. */
export async function openTextEngine(flags: EngineFlags, signal: AbortSignal): Promise<OpenTextEngine> {
  const config = await commandConfig(undefined, { overrides: enginesOf(flags) });
  await using scope = new AsyncDisposableStack();
  const { engines } = scope.use(await openEngines({ ...config, engines: undefined }, signal));
  const [first] = engines;
  if (first === undefined) throw refused("no engine is configured");
  const { engine } = first;
  const { detokenize, spell, baseUrl } = engine;
  if (detokenize === undefined || spell === undefined)
    throw refused(`the ${engine.name} server at ${baseUrl} tells no texts of tokens: give --tokenizer, or a server of vLLM or llama.cpp`);
  const { models, fingerprints } = await probeEngine(engine, signal);
  const [model] = models;
  if (model === undefined) throw refused(`the engine at ${baseUrl} serves no model`);
  const fingerprint = fingerprints?.tokenizer ?? null;
  if (fingerprint === null)
    throw refused(`the engine at ${baseUrl} does not show its tokenizer, so that it could be held against the record`);
  const release = scope.move();
  const spelling = { baseUrl, detokenize: detokenize.bind(engine), spell: spell.bind(engine) };
  return { source: { engine: spelling, model, fingerprint }, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

function refused(message: string): AlidadeError {
  return new AlidadeError("config_invalid", `--engine: ${message}`, { param: "engine" });
}
