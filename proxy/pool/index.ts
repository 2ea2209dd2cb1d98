export { callsAtOnce, resampleLost } from "./engine-options.ts";
export { EnginePool } from "./engine-pool.ts";
export { EngineSlot } from "./engine-slot.ts";
export { probeEngine } from "./probe-engine.ts";
export { EngineRoute } from "./routes.ts";
export { preferPolicy } from "./serving.ts";
