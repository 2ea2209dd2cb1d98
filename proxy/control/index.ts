export { type ControlEnv, mostBodyBytes } from "./control-body.ts";
export type { Controlled } from "./controlled.ts";
export { engineMetrics } from "./engine-metrics.ts";
export { PauseBody, PolicyBody } from "./fence-bodies.ts";
export { type Fault, faultsOfProxy, type Health, healthOf, statusCodeOf, timeText } from "./health.ts";
export { openApi } from "./openapi.ts";
export { answerError, answerRoute, callerLeft, type ListenerRoute, nothing, type RouteRequest } from "./route.ts";
