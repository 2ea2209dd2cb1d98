import { lstat, readFile, stat } from "node:fs/promises";
import { messageOf } from "../errors.ts";
import { taskError } from "./task-error.ts";

type TextBounds = { mostBytes: number; followsLinks: boolean };

/**
 * The text of a file of a task. Only a regular file of a bounded size is read: a device and a pipe have no end. Throws
 * `task_invalid` naming it.
 */
export async function readText(file: string, { mostBytes, followsLinks }: TextBounds): Promise<string> {
  const found = await (followsLinks ? stat : lstat)(file).catch(() => null);
  if (!found?.isFile()) throw taskError(file, "the file", `is no file${followsLinks ? "" : " (links are not followed)"}: put one there`);
  if (found.size > mostBytes) throw taskError(file, "the file", `has ${found.size} bytes: shorten it to at most ${mostBytes}`);
  return readFile(file, "utf8").catch((error: unknown) => {
    throw taskError(file, "the file", `cannot be read (${messageOf(error)})`);
  });
}
