/** How far attempts had come when their process died, by the logs of their sessions. */
import { stat } from "node:fs/promises";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import { countFinished, toRecording } from "../../proxy/index.ts";
import { readJsonLines, type Store } from "../../proxy/store/index.ts";
import { attemptKey } from "./run-records.ts";

/** Some thousand attempts, read in half a second. The file of a node grows for ever, and what ran lately stands at its end. */
const lastBytes = 32 * 1024 * 1024;

/** The records at the end of a file, the last one of an attempt last. What cannot be read is left out. */
export async function* latestRecords(file: string): AsyncGenerator<RolloutRecord> {
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  const from = { number: 1, offset: Math.max(0, size - lastBytes), bytes: 0 };
  // The first line may be the end of one.
  const leaveOut = () => null;
  for await (const record of readJsonLines<RolloutRecord | null>(file, (value) => RolloutRecord.parse(value), leaveOut, from))
    if (record !== null) yield record;
}

/**
 * Calls that each attempt had finished; one that goes on with the session of an earlier one has those too. `records`: a file of
 * them. An attempt without a session, or with a log that cannot be read, is left out.
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
