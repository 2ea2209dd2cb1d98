/** Removes what dead processes left behind: containers with their volumes, folders and processes. */
import { backends } from "./index.ts";

/**
 * Everything that Alidade made on this host and whose owner is gone or whose lease is over; with `all`, also what living
 * processes own. Returns what was removed, in words. Running it twice is harmless.
 */
export async function reap(options: { all?: boolean }, signal: AbortSignal): Promise<string[]> {
  const removed: string[] = [];
  for (const backend of backends) {
    if ((await backend.unavailable(signal)) === null) removed.push(...(await backend.reap(options, signal)));
  }
  return removed;
}
