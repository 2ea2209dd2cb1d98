export { EnginePool } from "./engine-pool.ts";
export { EngineSlot } from "./engine-slot.ts";
export { probeEngine } from "./probe-engine.ts";
export { preferPolicy } from "./serving.ts";
