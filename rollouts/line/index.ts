export { brokenBy } from "./broken-by.ts";
export { type MadeAttempt, makeAttempt } from "./make-attempt.ts";
export { watchOfService } from "./null-watch.ts";
export { type Aside, type LineEnd, type LineSetup, RolloutLine, type RolloutSource } from "./rollout-line.ts";
