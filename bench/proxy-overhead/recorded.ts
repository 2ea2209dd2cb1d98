/** What of a round's calls is in the session logs: read here and not by the proxy, whose heap the entries would fill. */
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { LogEntry } from "../../base/schema/session-log.ts";

export type Recorded = {
  calls: number;
  /** With ids, and nothing amiss. */
  whole: number;
  /** With a parent. */
  linked: number;
  delivered: number;
  bytes: number;
};

/** Counts, and removes the logs. */
export async function takeRecorded(folder: string): Promise<Recorded> {
  const recorded: Recorded = { calls: 0, whole: 0, linked: 0, delivered: 0, bytes: 0 };
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const text = await readFile(path, "utf8");
    await rm(path);
    recorded.bytes += Buffer.byteLength(text);
    for (const line of text.split("\n")) if (line !== "") count(JSON.parse(line) as LogEntry, recorded);
  }
  return recorded;
}

function count(entry: LogEntry, recorded: Recorded): void {
  if (entry.type === "call_begun" && entry.parent_call_id !== null) recorded.linked++;
  if (entry.type === "call_finished") {
    recorded.calls++;
    if (entry.missing === null && entry.error === null && entry.prompt_ids !== null) recorded.whole++;
  }
  if (entry.type === "answered" && entry.delivery === "complete") recorded.delivered++;
}
