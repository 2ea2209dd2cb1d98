/** Opens a run's index (index-file.ts) as the run's records are now. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type IndexFile, indexedFiles, isSame, looseSessions } from "./index-file.ts";
import { readIndex } from "./index-lines.ts";

/** What is not in the index yet is read, and the index written for the next reader. */
export async function openIndex(folder: string): Promise<IndexFile> {
  const known = await readIndex(folder);
  if (known !== null && (await isFresh(folder, known))) return known;
  const { updateIndex } = await import("./update-index.ts");
  return updateIndex(folder, known);
}

/** An open index as the records are now, for a reader that stays: null where it is as it was. It is not written. */
export async function refreshIndex(folder: string, known: IndexFile): Promise<IndexFile | null> {
  if (await isFresh(folder, known)) return null;
  const { updateIndex } = await import("./update-index.ts");
  return updateIndex(folder, known, { isLive: true });
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
