import { hashTree, type TreeFile } from "../../base/files/file-tree.ts";
import { cached } from "../../base/host/cache-folder.ts";
import { writeTree } from "../made/write-tree.ts";

/** Copies files to a folder of the cache, because a task's own folder holds other files beside them. The folder's name is their hash. */
export function keptFiles(files: TreeFile[]): Promise<string> {
  return cached(`terminal-bench/${hashTree(files).slice(0, 32)}`, (folder) => writeTree(folder, files));
}
