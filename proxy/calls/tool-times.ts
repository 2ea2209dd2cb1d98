/** When the tools ran whose results a call brings, as far as the proxy sees it. */
import type { ToolTime } from "../../base/schema/watcher.ts";
import type { Call } from "../session/call.ts";

/** More tools in one turn are not told to a monitor. */
const mostTools = 64;

/** From the end of the call that asked for a tool to the beginning of the one that brings its result; the harness's own time is in it. */
export function toolTimes(call: Call, parent: Call | null | undefined): ToolTime[] {
  const ended = parent?.outcome;
  if (!ended?.message) return [];
  const asked = ended.message.parts.filter((part) => part.type === "tool_call").slice(0, mostTools);
  if (asked.length === 0) return [];
  const results = call.begun.messages.new.flatMap(({ parts }) => parts).filter((part) => part.type === "tool_result");
  const brought = new Set(results.map(({ call_id }) => call_id));
  // A harness may send other ids than the engine's: then all results of the turn stand for all its calls.
  const found = results.length === asked.length ? asked : asked.filter(({ id }) => brought.has(id));
  return found.map(({ id, name }) => ({ id, name, started: ended.time, ended: call.begun.time }));
}
