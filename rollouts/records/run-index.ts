/** Opens a run's index (index-file.ts) as the run's records are now. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type IndexFile, indexedFiles, isSame, looseSessions } from "./index-file.ts";
import { readIndex } from "./index-lines.ts";

/**
 * What is not in the index yet is read, and the index written for the next reader. `prepare`: first told how many bytes of records
 * are not in it; it may write the index itself.
 */
export async function openIndex(folder: string, prepare?: (unread: number) => Promise<void>): Promise<IndexFile> {
  let known = await readIndex(folder);
  if (known !== null && (await isFresh(folder, known))) return known;
  if (prepare !== undefined) {
    const unread = await countUnread(folder, known);
    known = null;
    await prepare(unread);
    known = await readIndex(folder);
    if (known !== null && (await isFresh(folder, known))) return known;
  }
  const { updateIndex } = await import("./update-index.ts");
  return updateIndex(folder, known);
}

/** An open index as the records are now, for a reader that stays: null where it is as it was. It is not written. */
export async function refreshIndex(folder: string, known: IndexFile): Promise<IndexFile | null> {
  if (await isFresh(folder, known)) return null;
  const { updateIndex } = await import("./update-index.ts");
  return updateIndex(folder, known, { isLive: true });
}

/** Bytes of records and of sessions without a record that the index lacks. A file that is shorter than it was is read whole. */
async function countUnread(folder: string, known: IndexFile | null): Promise<number> {
  let unread = 0;
  for (const [key, name] of Object.entries(indexedFiles)) {
    const seen = known?.files[key as keyof typeof indexedFiles]?.bytes ?? 0;
    const now = await bytesOf(join(folder, name));
    unread += now < seen ? now : now - seen;
  }
  const seen = new Map(known?.sessions.map(({ session_id, bytes }) => [session_id, bytes]));
  // Without an index it is not known which sessions have a record, and most have one if there is any.
  for (const id of known === null && unread > 0 ? [] : await looseSessions(folder, known ?? { trajectories: [], records: [] })) {
    const now = await bytesOf(join(folder, "sessions", `${id}.jsonl`));
    if (now !== seen.get(id)) unread += now;
  }
  return unread;
}

async function bytesOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

async function isFresh(folder: string, index: IndexFile): Promise<boolean> {
  for (const [key, name] of Object.entries(indexedFiles)) {
    const seen = index.files[key as keyof typeof indexedFiles];
    if (!isSame(seen, await stat(join(folder, name)).catch(() => null))) return false;
  }
  const known = new Map(index.sessions.map((one) => [one.session_id, one]));
  for (const id of await looseSessions(folder, index)) {
    const seen = known.get(id);
    const now = await stat(join(folder, "sessions", `${id}.jsonl`)).catch(() => null);
    if (seen === undefined || now === null || seen.bytes !== now.size || seen.changed !== now.mtimeMs) return false;
    known.delete(id);
  }
  return known.size === 0;
}
