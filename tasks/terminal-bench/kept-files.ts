import { hashTree, type TreeFile } from "../../base/files/file-tree.ts";
import { cached } from "../../base/host/cache-folder.ts";
import { writeTree } from "../made/write-tree.ts";

/** A folder of the cache with these files, for what lies among others in a task's folder. Its name is their hash. */
export function keptFiles(files: TreeFile[]): Promise<string> {
  return cached(`terminal-bench/${hashTree(files).slice(0, 32)}`, (folder) => writeTree(folder, files));
}
