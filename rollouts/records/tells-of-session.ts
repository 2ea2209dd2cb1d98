import type { LogLine } from "../../base/schema/session-log.ts";

/** Whether a line makes its session one to count. A session without calls tells nothing, unless it carries a team's reward. */
export function tellsOfSession(entry: LogLine, member: string | null): boolean {
  const type = entry.type === "damaged" ? entry.entry_type : entry.type;
  return type === "call_begun" || (entry.type === "rewarded" && member !== null);
}
