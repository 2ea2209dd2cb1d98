export { type PlayedCalls, playCall, playCalls } from "./play-calls.ts";
export { areAgentsDoing, type UnansweredService } from "./whose-doing.ts";
