/** What a submission asks for, whichever driver: groups with their tasks as text, and the rollouts of each. */
import { Turns } from "../../base/host/turns.ts";
import { hashOfTask } from "../../base/schema/ids.ts";
import type { Task } from "../../base/schema/task.ts";
import { hasLater, placesOf } from "./group-tools.ts";
import type { GroupPart, SetSpec } from "./records.ts";
import { refusals } from "./refusals.ts";

export type AskedGroup = { key: string; hash: string; task_id: string; task: string; places: readonly number[] | null };
export type AskedRollout = { id: string; key: string; place: number };

/** `number`: its place in the set. */
export type NumberedGroup = AskedGroup & { number: number };

/** By their keys. */
export type KnownGroups = ReadonlyMap<string, { number: number; hash: string }>;

/** Before the transaction: to write and hash the tasks of many takes longer than a turn of the event loop. */
export async function askedGroups(parts: readonly GroupPart[]): Promise<AskedGroup[]> {
  const turns = new Turns();
  const texts = new Map<Task, Pick<AskedGroup, "hash" | "task">>();
  const groups: AskedGroup[] = [];
  for (const { group_key, task, places } of parts) {
    await turns.take();
    const text = texts.get(task) ?? { hash: hashOfTask(task), task: JSON.stringify(task) };
    texts.set(task, text);
    groups.push({ key: group_key, task_id: task.task_id, ...text, places });
  }
  return groups;
}

/**
 * `known`: those of the groups that the set has, and `count` how many it has. Throws `request_invalid`: 409 for another task under a
 * group's key, 400 for a place beyond the group.
 */
export function planSubmission(
  { id, spec, count }: { id: string; spec: SetSpec; count: number },
  asked: readonly AskedGroup[],
  known: KnownGroups,
): { fresh: NumberedGroup[]; rollouts: AskedRollout[] } {
  const all = new Map(known);
  const fresh: NumberedGroup[] = [];
  const rollouts: AskedRollout[] = [];
  for (const group of asked) {
    const { key, hash, places } = group;
    const found = all.get(key) ?? { number: count + fresh.length, hash };
    if (found.hash !== hash) throw refusals.otherTask(key);
    if (!all.has(key)) fresh.push({ ...group, number: found.number });
    all.set(key, found);
    if (hasLater(spec) && places !== null) throw refusals.wholeGroupsOnly(key);
    for (const place of placesWithin(spec, key, places)) rollouts.push({ id: `${id}-${found.number}-${place}`, key, place });
  }
  return { fresh, rollouts };
}

function placesWithin(spec: SetSpec, key: string, places: readonly number[] | null): readonly number[] {
  const size = placesOf(spec);
  const beyond = places?.find((place) => place >= size);
  if (beyond !== undefined) throw refusals.beyondGroup(key, size, beyond);
  return places ?? Array.from({ length: size }, (_, place) => place);
}
