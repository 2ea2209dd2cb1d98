/** The engines: one line each. */
import { registryOf } from "../base/host/plug-ins.ts";
import { anthropic } from "./anthropic.ts";
import type { EngineKind } from "./engine.ts";
import { google } from "./google.ts";
import { llamaCpp } from "./llama-cpp.ts";
import { openai, openaiCompatible } from "./openai.ts";
import { withoutSecrets } from "./secrets/without-secrets.ts";
import { sglang } from "./sglang.ts";
import { vllm } from "./vllm.ts";

export const engineRegistry = registryOf<EngineKind>({
  noun: "engine",
  param: "engine.kind",
  list: [vllm, sglang, llamaCpp, openai, openaiCompatible, anthropic, google].map(withoutSecrets),
  members: { name: "text", title: "text", defaultUrl: "text?", create: "function" },
  made: withoutSecrets,
});
export const { list: engines, named: engineNamed } = engineRegistry;
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
export { LostAnswer } from "./http/lost-answer.ts";
export { keepSecret } from "./secrets/secrets.ts";
