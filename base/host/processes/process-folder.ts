/** The end of a process sandbox: its processes, then its files. */
import { randomUUID } from "node:crypto";
import { chmod, readdir, rename, rm, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { killProcesses } from "./process-tree.ts";

/** Ends what still runs there, then removes the files. */
export async function removeSandboxFolder(folder: string, groups: number[]): Promise<void> {
  await killProcesses({ mark: sandboxMark(folder), groups });
  try {
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  } catch {
    await removeHostile(folder);
  }
}

/** In the environment of every process of the sandbox. */
export function sandboxMark(folder: string): string {
  return `ALIDADE_SANDBOX=${folder}`;
}

/**
 * Removes what was made to stay: folders without permissions, paths longer than the system's longest. Each folder is moved right below `folder` before it is entered, so all paths are short. Links are not followed.
 */
async function removeHostile(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  const waiting: Buffer[] = [Buffer.from(folder)];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true, encoding: "buffer" })) {
      const path = Buffer.concat([next, Buffer.from("/"), entry.name]);
      if (!entry.isDirectory()) await unlink(path);
      else waiting.push(await movedTo(join(folder, randomUUID()), path));
    }
    if (next.toString() !== folder) await rmdir(next);
  }
  await rmdir(folder);
}

async function movedTo(place: string, path: Buffer): Promise<Buffer> {
  await chmod(path, 0o700);
  await rename(path, place);
  return Buffer.from(place);
}
