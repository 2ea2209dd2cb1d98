/** The end of a process sandbox: its processes, then its files. */
import { chmod, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { killProcesses } from "./process-tree.ts";

/** Ends what still runs there, then removes the files. */
export async function removeSandboxFolder(folder: string, groups: number[]): Promise<void> {
  await killProcesses({ mark: sandboxMark(folder), groups });
  try {
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  } catch {
    // Folders that were made unreadable inside; links are not followed.
    await makeWritable(folder);
    await rm(folder, { recursive: true, force: true });
  }
}

/** In the environment of every process of the sandbox. */
export function sandboxMark(folder: string): string {
  return `ALIDADE_SANDBOX=${folder}`;
}

async function makeWritable(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) if (entry.isDirectory()) await makeWritable(join(folder, entry.name));
}
