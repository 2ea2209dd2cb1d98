/** The log of a session travels in the blob of its trajectory where others may go on from its turns, behind all other records. */
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";
import { LogEntry, type LogLine } from "../../base/schema/session-log.ts";

const PackedLog = z.object({ session_log: z.array(LogEntry) });
const begins = '{"session_log":';

/** Empty where a line is damaged: no fork goes on from such a log. */
export function packLog(lines: readonly LogLine[]): { session_log: readonly LogLine[] }[] {
  return lines.some(({ type }) => type === "damaged") ? [] : [{ session_log: lines }];
}

export function isLog(line: string): boolean {
  return line.startsWith(begins);
}

/** `lines`: the records of the blob, each as JSON. null: there is none. */
export function unpackLog(lines: readonly string[]): LogEntry[] | null {
  const line = lines.findLast(isLog);
  return line === undefined ? null : PackedLog.parse(readJson(line)).session_log;
}
