/** What a run folder holds, by its index. */
import type { IndexFile } from "../../../rollouts/records/index.ts";
import { openIndex } from "../../../rollouts/records/index.ts";
import { type Entry, toEntries } from "../../../view/index.ts";
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
