import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { messageOf } from "../../base/errors.ts";
import { taskError } from "../task-error.ts";

type TextBounds = { mostBytes: number; followsLinks: boolean };

/** A pipe without a writer is opened at once, and read as the end of a file. */
const plainly = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * The text of a file of a task. Only a regular file of a bounded size is read, and no more of it: a device has no end, and
 * a file of the kernel may say that it has none. Throws `task_invalid` naming it.
 */
export async function readText(file: string, { mostBytes, followsLinks }: TextBounds): Promise<string> {
  await using handle = await opened(file, followsLinks);
  const found = await handle?.stat();
  if (!handle || !found?.isFile())
    throw taskError(file, "the file", `is no file${followsLinks ? "" : " (links are not followed)"}: put one there`);
  const tooLong = (bytes: number | string) => taskError(file, "the file", `has ${bytes} bytes: shorten it to at most ${mostBytes}`);
  if (found.size > mostBytes) throw tooLong(found.size);
  const read = await buffer(handle.createReadStream({ end: mostBytes, autoClose: false })).catch((error: unknown) => {
    throw taskError(file, "the file", `cannot be read (${messageOf(error)})`);
  });
  if (read.length > mostBytes) throw tooLong(`more than ${mostBytes}`);
  return read.toString("utf8");
}

/** null: it is not there, or cannot be opened as a file. */
async function opened(file: string, followsLinks: boolean) {
  return open(file, followsLinks ? plainly : plainly | constants.O_NOFOLLOW).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EACCES") throw taskError(file, "the file", `cannot be read (${error.message})`);
    return null;
  });
}
