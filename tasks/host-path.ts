/** Host paths of tasks. Those that task files name are relative to the file's folder, and never outside it, links included. */
import { realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { taskError } from "./task-error.ts";

export function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** The absolute folder that `path` names below `folder`; `file` and `field` are for the error. */
export async function folderBelow(folder: string, path: string, file: string, field: string): Promise<string> {
  if (isAbsolute(path)) throw taskError(file, field, `${path} is absolute: name a folder beside the task file`);
  const target = resolve(folder, path);
  if (!isBelow(folder, target)) throw taskError(file, field, `${path} leaves the task's own folder`);
  const found = await stat(target).catch(() => null);
  if (!found?.isDirectory()) throw taskError(file, field, `there is no folder ${path} beside the task file`);
  // A link in the folder may point anywhere: what counts is where it really leads.
  const real = await realpath(target);
  if (!isBelow(await realpath(folder), real)) throw taskError(file, field, `${path} is a link that leaves the task's own folder`);
  return real;
}

function isBelow(folder: string, target: string): boolean {
  const way = relative(folder, target);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
