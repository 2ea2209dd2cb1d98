/**
 * Harbor 1.0 to 1.4: a folder with `task.toml`, `instruction.md`, `environment/` and `tests/test.sh`, a folder of such
 * folders, or an archive of either. They run unmodified; what of them cannot be had is refused by its field.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isBelow } from "../base/files/file-tree.ts";
import type { Task } from "../base/schema/task.ts";
import { configName } from "./harbor/read-config.ts";
import { readTask, toTask } from "./harbor/to-task.ts";
import { isArchive, unpackArchive } from "./harbor/unpack-archive.ts";
import { exists } from "./host-path.ts";
import { loadEach, loadFolders } from "./load-each.ts";
import { taskError } from "./task-error.ts";
import { type LoadOptions, networkFlags, type TaskFormat } from "./task-format.ts";

export const harbor: TaskFormat = {
  name: "harbor",
  title: "Harbor: a folder with task.toml, a folder of such folders, or a .tar, .tar.gz or .zip of them",

  async matches(path) {
    const found = await stat(path).catch(() => null);
    if (found?.isFile()) return isArchive(path);
    return found?.isDirectory() === true && (await taskFolders(path)).length > 0;
  },

  async load(path, options) {
    const { tasks } = await loadFolders(await wholeFolders(path, options), { read: readTask, toTask }, options);
    sayNetwork(tasks, path, options);
    return tasks;
  },
};

/** Those of which an archive has all; what it has in the place of files is left out by its name, and its task with it. */
async function wholeFolders(path: string, options: LoadOptions): Promise<string[]> {
  if ((await stat(path)).isDirectory()) return taskFolders(path);
  const { folder: place, refused } = await unpackArchive(path);
  await loadEach(
    refused,
    () => path,
    async ({ path: name, type }) => {
      throw taskError(path, name, `is a ${type}: pack the file itself (tar --dereference --hard-dereference)`);
    },
    options,
  );
  return (await taskFolders(place)).filter((folder) => !refused.some((one) => isBelow(join(place, one.path), folder)));
}

/** Data sets stand in a folder or two of their own in an archive. */
const deepest = 3;

/**
 * The folder itself, else its folders, else theirs. Among tasks a folder that has an instruction and no task.toml is one
 * too, so that it is named and not passed by.
 */
async function taskFolders(folder: string, depth = 0): Promise<string[]> {
  if (await exists(join(folder, configName))) return [folder];
  const entries = await readdir(folder, { withFileTypes: true });
  const inside = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith(".")).map((entry) => join(folder, entry.name));
  const has = await Promise.all(inside.map((one) => exists(join(one, configName))));
  const isMeant = await Promise.all(inside.map((one) => exists(join(one, "instruction.md"))));
  if (has.includes(true)) return inside.filter((_, index) => has[index] || isMeant[index]).sort();
  if (depth + 1 >= deepest) return [];
  return (await Promise.all(inside.sort().map((one) => taskFolders(one, depth + 1)))).flat();
}

function sayNetwork(tasks: Task[], path: string, { allowPublic, verifierNetwork, progress }: LoadOptions): void {
  const unstated = tasks.filter(({ labels }) => labels.network === "unstated");
  const flags = networkFlags({ allowPublic, verifierNetwork });
  if (unstated.length > 0 && flags !== null)
    progress?.(
      `${path}: ${unstated.length} of ${tasks.length} tasks name no network_mode. In Harbor they reach the whole internet; here they reach nothing, unless you pass ${flags}`,
    );
}
