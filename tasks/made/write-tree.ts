/** Writes a tree of files into a folder of this machine. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { NoTask } from "./no-task.ts";

/** What a file system says of a name or of two names that are one there. */
const unwritable = new Set(["EEXIST", "ENOTDIR", "EISDIR", "ENAMETOOLONG", "EINVAL", "EILSEQ"]);

/** Throws NoTask for a path that cannot be written. No file may be there yet. */
export async function writeTree(folder: string, files: TreeFile[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const { path, content, mode } of files) {
    try {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content, { mode, flag: "wx" });
    } catch (error) {
      if (!unwritable.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
      throw new NoTask("not_files", `${path} cannot be written here`);
    }
  }
}
