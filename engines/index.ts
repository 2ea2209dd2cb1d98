/** The engines: one line each. */
import type { EngineKind } from "./engine.ts";
import { vllm } from "./vllm.ts";

export const engines: readonly EngineKind[] = [vllm];
export type { Engine, EngineFacts, EngineKind, SampleEvent, SampleRequest } from "./engine.ts";
