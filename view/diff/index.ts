export { compareSessions } from "./compare-sessions.ts";
export { renderDiff } from "./render.ts";
