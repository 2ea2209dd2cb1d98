export { neutralSampling } from "./admit.ts";
export { toErrorRecord } from "./generation.ts";
export { HarnessProxy, type ProxyOptions } from "./harness-proxy.ts";
export { rebuildSession } from "./rebuild.ts";
export type { Session } from "./session.ts";
