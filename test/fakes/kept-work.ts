/** Works and task folders from files in memory, kept until the test file ends. */
import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { changesBetween, keepLayer, type LayerEntry, type WorkLayer } from "../../base/files/layer.ts";

let folder: string | undefined;

function ownFolder(): string {
  folder ??= mkdtempSync(join(tmpdir(), "alidade-kept-"));
  return folder;
}
process.on("exit", () => folder && rmSync(folder, { recursive: true }));

/** The work that makes `files` of `base` in a workdir. `more`: what no file of a tree says, such as links and owners. */
export async function keptWork(base: TreeFile[], files: TreeFile[], workdir = "/work", more: Odd[] = []): Promise<WorkLayer> {
  return keepLayer(withMore(changesBetween(base, files, workdir), more), ownFolder());
}

type Odd = Pick<LayerEntry, "path" | "type" | "mode"> & Partial<LayerEntry>;

async function* withMore(entries: AsyncIterable<LayerEntry>, more: Odd[]): AsyncGenerator<LayerEntry> {
  yield* entries;
  for (const one of more) yield { kind: "added", owner: null, mtime: new Date(0), size: 0, target: null, content: null, ...one };
}

/** A folder with these files, as a task names one. */
export async function folderOf(files: TreeFile[]): Promise<string> {
  const made = await mkdtemp(join(ownFolder(), "task-"));
  for (const { path, content, mode } of files) {
    await mkdir(dirname(join(made, path)), { recursive: true });
    await writeFile(join(made, path), content, { mode });
  }
  return made;
}
