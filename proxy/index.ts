export { neutralSampling } from "./admit.ts";
export type { EngineState } from "./canary.ts";
export type { EngineSpec } from "./engine-slot.ts";
export { toErrorRecord } from "./error-record.ts";
export { HarnessProxy, type ProxyOptions } from "./harness-proxy.ts";
export { pausableClock } from "./pausable-clock.ts";
export { rebuildSession } from "./rebuild.ts";
export { EngineRoute } from "./routes.ts";
export type { Session } from "./session.ts";
