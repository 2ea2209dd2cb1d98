/** What this machine has for sandboxes. */
import { statfs } from "node:fs/promises";
import { totalmem } from "node:os";

/** MiB of a machine's memory, or of what this process may have of it where a control group says less. */
export function ownMemory(): number {
  return Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY) / 1024 ** 2);
}

/** MiB that this user may still write below a folder. */
export async function freeDisk(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return Math.floor((bavail * bsize) / 1024 ** 2);
}
