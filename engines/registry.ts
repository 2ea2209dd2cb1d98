/** The engines: one line each. */
import { registryOf } from "../base/host/plug-ins.ts";
import { anthropic } from "./anthropic.ts";
import type { EngineKind } from "./engine.ts";
import { google } from "./google.ts";
import { llamaCpp } from "./llama-cpp.ts";
import { openai, openaiCompatible } from "./openai.ts";
import { sglang } from "./sglang.ts";
import { vllm } from "./vllm.ts";
import { withoutSecrets } from "./without-secrets.ts";

export const engineRegistry = registryOf<EngineKind>({
  noun: "engine",
  param: "engine.kind",
  list: [vllm, sglang, llamaCpp, openai, openaiCompatible, anthropic, google].map(withoutSecrets),
  members: { name: "text", title: "text", defaultUrl: "text?", create: "function" },
  made: withoutSecrets,
});
export const { list: engines, named: engineNamed } = engineRegistry;
