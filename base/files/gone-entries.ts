/** Deletions of what was there before and is not met any more. */
import { posix } from "node:path";
import type { Change, LayerEntry } from "./layer.ts";

/** A folder that is gone says it of all that was in it. `before` in the order of its paths. */
export function* goneEntries(before: Iterable<Change>, isThere: (path: string) => boolean): Generator<LayerEntry> {
  const gone = new Set<string>();
  for (const { path, type } of before) {
    if (type === "deleted" || isThere(path)) continue;
    gone.add(path);
    if (!gone.has(posix.dirname(path))) yield deletedEntry(path);
  }
}

export function deletedEntry(path: string): LayerEntry {
  return { path, type: "deleted", kind: "deleted", mode: 0, owner: null, mtime: new Date(0), size: 0, target: null, content: null };
}
