/** `node lock-process.ts FOLDER`: takes the folder's lock on every "take" and gives it back on every "free", and says whether it had it. */
import { lockFolder } from "../../../rollouts/records/folder-lock.ts";

const folder = process.argv[2] as string;
let lock: AsyncDisposable | null = null;

process.on("message", async (word) => {
  if (word === "take") lock = await lockFolder(folder).catch(() => null);
  const had = lock !== null;
  if (word === "free") {
    await lock?.[Symbol.asyncDispose]();
    lock = null;
  }
  process.send?.(had);
});
