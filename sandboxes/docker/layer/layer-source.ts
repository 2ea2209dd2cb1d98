/** Where a container's layer is read from: the engine's API, or the folders of its overlay. Both say the same in the same order. */
import type { LayerEntry } from "../../../base/files/layer.ts";
import type { PathStat } from "../path-stat.ts";

export type Kind = LayerEntry["kind"];
/** What became of a path. */
export type ChangedPath = [path: string, kind: Kind];

/** One member of an archive. `type`: null for what no layer holds (sockets, pipes, devices). */
export type ArchiveEntry = Omit<LayerEntry, "type" | "kind"> & { type: Exclude<LayerEntry["type"], "deleted"> | null };

/** An archive to ask for: one path, or all below it. */
export type ArchiveRead = { path: string; whole: boolean };

export type LayerSource = {
  /** Paths that differ from the image, those below `asked` and the folders above them at least. Each once. */
  changed(asked: string[]): AsyncIterable<ChangedPath>;
  /** A link is described itself, and not its target. null: nothing is there. */
  stat(path: string): Promise<PathStat | null>;
  /** A folder before what is in it, names in the order of their bytes. Read each content before the next entry. */
  archive(read: ArchiveRead): AsyncIterable<ArchiveEntry>;
};
