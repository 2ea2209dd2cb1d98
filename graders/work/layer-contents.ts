/** Some files of a kept layer, in memory. */
import { buffer } from "node:stream/consumers";
import { readLayer, type WorkLayer } from "../../base/files/layer.ts";

/** Bounds the files of one layer that are looked at, together. As much as the state of one service may hold. */
export const mostBytes = 128 * 1024 * 1024;

/** A SQLite database, the log of commits that are not in it yet, and the journal that takes changes back. */
export function databaseFiles(path: string): string[] {
  return [path, `${path}-wal`, `${path}-journal`];
}

export type FileContent = Buffer | "too large" | null;

/** One pass over the layer, to its end. `room`: for the bytes of all together. A path that is no file has no entry. */
export async function contentsOf(work: WorkLayer, paths: Set<string>, room = mostBytes): Promise<Map<string, FileContent>> {
  const found = new Map<string, FileContent>();
  const firstNames = new Map<string, string>();
  let left = room;
  for await (const { path, type, target, size, content } of readLayer(work)) {
    if (!paths.has(path)) continue;
    if (type === "hardlink" && target !== null) firstNames.set(path, target);
    if (content === null) continue;
    found.set(path, size > left ? "too large" : await buffer(content));
    left -= size > left ? 0 : size;
  }
  if (firstNames.size === 0) return found;
  const firsts = await contentsOf(work, new Set(firstNames.values()), left);
  for (const [path, first] of firstNames) found.set(path, firsts.get(first) ?? null);
  return found;
}
