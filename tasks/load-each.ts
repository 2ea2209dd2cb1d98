/** One bad task is left out, and the others are loaded. */
import { AlidadeError, messageOf } from "../base/errors.ts";
import type { Task } from "../base/schema/task.ts";
import { taskError } from "./task-error.ts";
import type { LoadOptions } from "./task-format.ts";

/**
 * What `load` makes of each, in their order. The error of one that it throws for goes to `onLeftOut`; without that the first
 * error ends the load. `nameOf`: the file and the place in it, for an error that names none.
 */
export async function loadEach<From, To>(
  all: readonly From[],
  nameOf: (one: From) => string,
  load: (one: From) => Promise<To>,
  { onLeftOut, signal }: Pick<LoadOptions, "onLeftOut" | "signal">,
): Promise<To[]> {
  const loaded = await Promise.allSettled(all.map(load));
  return loaded.flatMap((one, index) => {
    if (one.status === "fulfilled") return [one.value];
    signal?.throwIfAborted();
    const error = named(one.reason, nameOf(all[index] as From));
    if (!onLeftOut) throw error;
    onLeftOut(error);
    return [];
  });
}

/** How a format makes a task of a folder: `read` what is in it, and `toTask` of those that are wanted. */
type FolderFormat<Read> = {
  read: (folder: string, options: LoadOptions) => Promise<Read>;
  toTask: (one: Read, options: LoadOptions) => Promise<Task>;
};

/** The tasks of folders that hold one each, with what was read of them. */
export async function loadFolders<Read extends { task_id: string; file: string }>(
  folders: readonly string[],
  { read, toTask }: FolderFormat<Read>,
  options: LoadOptions,
): Promise<{ wanted: Read[]; tasks: Task[] }> {
  const all = await loadEach(
    folders,
    (folder) => folder,
    (folder) => read(folder, options),
    options,
  );
  const wanted = all.filter(({ task_id }) => options.only?.has(task_id) ?? true);
  const tasks = await loadEach(
    wanted,
    ({ file }) => file,
    (one) => toTask(one, options),
    options,
  );
  return { wanted, tasks };
}

/** What nothing foresaw in one task is no reason against the others either. */
function named(reason: unknown, name: string): AlidadeError {
  return reason instanceof AlidadeError
    ? reason
    : taskError(name, "the task", `cannot be loaded (${messageOf(reason)}): mend or remove it`);
}
