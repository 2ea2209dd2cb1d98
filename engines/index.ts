export { grammarFields, isUnderGrammar } from "./chat/grammar.ts";
export { isCut, topKOf } from "./chat/sampling-support.ts";
export type {
  Engine,
  EngineFacts,
  EngineKind,
  PrefixReset,
  RenderSource,
  RoutedExperts,
  SampleEvent,
  SampleRequest,
  TokenSupport,
  TokenTexts,
} from "./engine.ts";
export { examine, type Finding } from "./examine.ts";
export { openGguf } from "./gguf-scorer.ts";
export { whyNoEngineUrl } from "./http/engine-url.ts";
export { LostAnswer } from "./http/refusal.ts";
export { engineNamed, engineRegistry, engines } from "./registry.ts";
