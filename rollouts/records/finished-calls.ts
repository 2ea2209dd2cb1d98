/** Counts the finished calls of attempts whose process died, from the logs of their sessions. */
import { stat } from "node:fs/promises";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import { countFinished, toRecording } from "../../proxy/index.ts";
import { readJsonLines, type Store } from "../../proxy/store/index.ts";
import { attemptKey } from "./run-records.ts";

/** Some thousand attempts, read in half a second. A node's file grows for ever, and the latest attempts stand at its end. */
const lastBytes = 32 * 1024 * 1024;

/** Yields the records at the end of a file, in order, so an attempt's latest record comes last. Skips unreadable lines. */
export async function* latestRecords(file: string): AsyncGenerator<RolloutRecord> {
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  const from = { number: 1, offset: Math.max(0, size - lastBytes), bytes: 0 };
  // The first line may be incomplete.
  const leaveOut = () => null;
  for await (const record of readJsonLines<RolloutRecord | null>(file, (value) => RolloutRecord.parse(value), leaveOut, from))
    if (record !== null) yield record;
}

/**
 * Counts the finished calls of each attempt. An attempt that continues the session of an earlier one has its calls too. `records`:
 * the file with the records. Leaves out attempts that have no session, or whose log cannot be read.
 */
export async function countFinishedCalls(
  records: string,
  store: Pick<Store, "read">,
  attempts: readonly string[],
): Promise<Map<string, number>> {
  const sessions = new Map<string, string>();
  for await (const record of latestRecords(records))
    if (record.session_id !== null && attempts.includes(attemptKey(record))) sessions.set(attemptKey(record), record.session_id);
  const counts = new Map<string, number>();
  for (const [attempt, id] of sessions) {
    const count = await finishedIn(store, id).catch(() => null);
    if (count !== null) counts.set(attempt, count);
  }
  return counts;
}

async function finishedIn(store: Pick<Store, "read">, id: string): Promise<number> {
  return countFinished(toRecording(id, await store.read(id))).calls;
}
