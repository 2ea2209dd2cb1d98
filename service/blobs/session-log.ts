/** If others may fork from a session's turns, its log is the last record in the blob of its trajectory. */
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";
import { LogEntry, type LogLine } from "../../base/schema/session-log.ts";

const PackedLog = z.object({ session_log: z.array(LogEntry) });
const begins = '{"session_log":';

/**
 * In characters of JSON: room for the ids of a million tokens. An agent may fill its log. A blob is written as one string, and
 * each fork of the group reads it, so a longer log is left out.
 */
const longestLog = 64 * 1024 * 1024;

/** Returns nothing if a line is damaged, or if the log is too long. No fork begins from such a rollout. */
export function packLog(lines: readonly LogLine[]): { session_log: readonly LogLine[] }[] {
  let length = 0;
  for (const line of lines) {
    length += JSON.stringify(line).length;
    if (line.type === "damaged" || length > longestLog) return [];
  }
  return [{ session_log: lines }];
}

export function isLog(line: string): boolean {
  return line.startsWith(begins);
}

/** `lines`: the records of the blob, each as JSON. null: the blob has no log. */
export function unpackLog(lines: readonly string[]): LogEntry[] | null {
  const line = lines.findLast(isLog);
  return line === undefined ? null : PackedLog.parse(readJson(line)).session_log;
}
