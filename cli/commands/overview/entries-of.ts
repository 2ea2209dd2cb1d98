/** What a run folder holds, by its index. */
import type { IndexFile } from "../../../rollouts/run-index/index-file.ts";
import { openIndex } from "../../../rollouts/run-index.ts";
import { type Entry, toEntries } from "../../../view/run/entries.ts";
import { say } from "../command-line.ts";

/** What cannot be read is told. */
export async function entriesOf(folder: string): Promise<Entry[]> {
  const index = await openIndex(folder);
  for (const message of damageOf(index)) say(`alidade: ${message}`);
  return toEntries(index);
}

function damageOf({ damaged, sessions }: IndexFile): string[] {
  return [...damaged.trajectories, ...damaged.rollouts, ...sessions.flatMap(({ damage }) => damage ?? [])];
}
