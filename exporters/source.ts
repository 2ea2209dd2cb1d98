/**
 * Trajectories as an exporter reads them: in their order, or group by group. The members of a group lie anywhere in a
 * run, so a first pass copies every trajectory into a scratch file and remembers where it lies; then each group is read
 * back, one trajectory at a time. Memory holds one trajectory and a few words about each.
 */
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Trajectory } from "../schema/trajectory.ts";
import { LastAttempts } from "./last-attempts.ts";

export type TrajectorySource = {
  /** Every trajectory, in the order of the run. */
  trajectories(): AsyncIterable<Trajectory>;
  /** Every group, in the order in which their first members come; a trajectory of no group is a group of its own. */
  groups(): AsyncIterable<TrajectoryGroup>;
};

export type TrajectoryGroup = {
  /** null: the trajectory belongs to no group. */
  id: string | null;
  /** How many rollouts the group was asked for; null where nobody said. */
  size: number | null;
  /** The last attempt of each rollout, by sample index. */
  members: GroupMember[];
};

export type GroupMember = Pick<Trajectory, (typeof remembered)[number]> & {
  sample_index: number | null;
  /** Reads the trajectory back; hold one at a time. Only while its group is the current one. */
  read(): Promise<Trajectory>;
};

/**
 * `scratch`: a folder for the copy that groups are read from (about the size of the run); default the system's.
 * `onSuperseded` is told of each attempt that is in no group because a later one of the same rollout replaced it.
 */
export function toSource(
  trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>,
  { scratch = tmpdir(), onSuperseded }: { scratch?: string | undefined; onSuperseded?: () => void } = {},
): TrajectorySource {
  return {
    async *trajectories() {
      yield* trajectories;
    },
    groups: () => readGroups(trajectories, scratch, onSuperseded),
  };
}

type Place = { group: string | null; size: number | null; member: Omit<GroupMember, "read">; offset: number; length: number };

async function* readGroups(
  trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>,
  scratch: string,
  onSuperseded: (() => void) | undefined,
): AsyncIterable<TrajectoryGroup> {
  await using file = await openScratch(scratch);
  const last = new LastAttempts<Place>();
  let offset = 0;
  let read = 0;
  for await (const trajectory of trajectories) {
    const bytes = Buffer.from(JSON.stringify(trajectory));
    await file.handle.write(bytes);
    last.add(trajectory, toPlace(trajectory, offset, bytes.length));
    offset += bytes.length;
    read++;
  }
  const places = last.values();
  for (let at = places.length; at < read; at++) onSuperseded?.();
  const groups = Map.groupBy(places, (place) => place.group ?? place);
  for (const members of groups.values()) yield toGroup(members, file.handle);
}

/** What is known of every rollout while another one is read: enough to rank it and to judge its place in the baseline. */
const remembered = [
  "trajectory_id",
  "rollout_id",
  "attempt",
  "purpose",
  "status",
  "stop_reason",
  "mask_reason",
  "reward",
  "in_loss",
  "in_baseline",
] as const satisfies (keyof Trajectory)[];

function toPlace(trajectory: Trajectory, offset: number, length: number): Place {
  const { group } = trajectory;
  const facts = Object.fromEntries(remembered.map((name) => [name, trajectory[name]])) as Pick<Trajectory, (typeof remembered)[number]>;
  return { group: group.id, size: group.size, member: { ...facts, sample_index: group.sample_index }, offset, length };
}

function toGroup(places: Place[], handle: FileHandle): TrajectoryGroup {
  // Stable: rollouts that have no sample index stay in the order of the run, after the others.
  const last = Number.POSITIVE_INFINITY;
  const sorted = places.toSorted((a, b) => (a.member.sample_index ?? last) - (b.member.sample_index ?? last) || 0);
  return {
    id: places[0]?.group ?? null,
    size: places.find((place) => place.size !== null)?.size ?? null,
    members: sorted.map((place) => ({ ...place.member, read: () => readBack(handle, place) })),
  };
}

async function readBack(handle: FileHandle, { offset, length }: Place): Promise<Trajectory> {
  const bytes = Buffer.alloc(length);
  await handle.read(bytes, 0, length, offset);
  // It was a trajectory when this process wrote it.
  return JSON.parse(bytes.toString("utf8")) as Trajectory;
}

/** Unlinked as soon as it is open: a killed process leaves nothing behind. */
async function openScratch(folder: string): Promise<AsyncDisposable & { handle: FileHandle }> {
  const own = await mkdtemp(join(folder, "alidade-export-"));
  try {
    const handle = await open(join(own, "trajectories"), "w+", 0o600);
    return { handle, [Symbol.asyncDispose]: () => handle.close() };
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}
