/** The engines: one line each. */
import { AlidadeError } from "../errors.ts";
import { anthropic } from "./anthropic.ts";
import type { EngineKind } from "./engine.ts";
import { google } from "./google.ts";
import { llamaCpp } from "./llama-cpp.ts";
import { openai, openaiCompatible } from "./openai.ts";
import { withoutSecrets } from "./secrets/without-secrets.ts";
import { sglang } from "./sglang.ts";
import { vllm } from "./vllm.ts";

export const engines: readonly EngineKind[] = [vllm, sglang, llamaCpp, openai, openaiCompatible, anthropic, google].map(withoutSecrets);
export { grammarFields, isUnderGrammar } from "./chat/grammar.ts";
export type {
  Engine,
  EngineFacts,
  EngineKind,
  PrefixReset,
  Rendered,
  RenderSource,
  SampleEvent,
  SampleRequest,
} from "./engine.ts";
export { type GgufScorer, llamaCppPackage, openGguf } from "./gguf-scorer.ts";
export { whyNoEngineUrl } from "./http/engine-url.ts";
export { keepSecret } from "./secrets/secrets.ts";

/** Throws `plugin_unknown` with the names that there are. */
export function engineNamed(name: string): EngineKind {
  const engine = engines.find((each) => each.name === name);
  if (engine) return engine;
  const names = engines.map((each) => each.name).join(", ");
  throw new AlidadeError("plugin_unknown", `There is no engine "${name}"; there are: ${names}.`, { param: "engine.kind" });
}
