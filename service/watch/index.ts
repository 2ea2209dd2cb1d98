export { type EventLine, type LogLevel, lineOfAttempt, lineOfCall, lineOfSet, textOfLine } from "./event-line.ts";
export { ObservedTimes } from "./observed-times.ts";
export { openSpans } from "./open-spans.ts";
export { ProcessMetrics } from "./process-metrics.ts";
