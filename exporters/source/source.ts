/**
 * Trajectories as an exporter reads them: in their order, or group by group. The members of a group lie anywhere in a
 * run, so a first pass copies every trajectory into a scratch file and remembers where it lies; then each group is read
 * back, one trajectory at a time. Memory holds one trajectory (or those of one team) and a few words about each.
 */
import { tmpdir } from "node:os";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { readTeam } from "./each-rollout.ts";
import { LastAttempts } from "./last-attempts.ts";
import { ScratchFile, type Span } from "./scratch-file.ts";

export type TrajectorySource = {
  /** Every trajectory, in the order of the run. */
  trajectories(): AsyncIterable<Trajectory>;
  /** Every group, in the order in which their first members come; a trajectory of no group is a group of its own. */
  groups(): AsyncIterable<TrajectoryGroup>;
};

export type TrajectoryGroup = {
  /** null: the trajectory belongs to no group. */
  id: string | null;
  /** The number of rollouts that the group was started with; null: unknown. */
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
 * `onSuperseded` gets each attempt that is in no group because a later one of the same rollout replaced it.
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

type GroupPlace = { group: string | null; size: number | null; member: Omit<GroupMember, "read">; span: Span };

async function* readGroups(
  trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>,
  scratch: string,
  onSuperseded: (() => void) | undefined,
): AsyncIterable<TrajectoryGroup> {
  await using file = new ScratchFile(scratch);
  const last = new LastAttempts<{ place: GroupPlace; isMember: boolean }>();
  let superseded = 0;
  for await (const trajectory of trajectories) {
    last.add(trajectory, { place: toPlace(trajectory, await file.write(trajectory)), isMember: trajectory.member !== null });
    superseded++;
  }
  const places: GroupPlace[] = [];
  for (const sessions of last.all()) {
    superseded -= sessions.length;
    const isTeam = sessions.length > 1 || sessions.some(({ isMember }) => isMember);
    places.push(
      isTeam
        ? await joined(
            file,
            sessions.map(({ place }) => place.span),
          )
        : (sessions[0] as { place: GroupPlace }).place,
    );
  }
  for (; superseded > 0; superseded--) onSuperseded?.();
  const groups = Map.groupBy(places, (place) => place.group ?? place);
  for (const members of groups.values()) yield toGroup(members, file);
}

async function joined(file: ScratchFile, spans: Span[]): Promise<GroupPlace> {
  const rollout = await readTeam(file, spans);
  return toPlace(rollout, await file.write(rollout));
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

function toPlace(trajectory: Trajectory, span: Span): GroupPlace {
  const { group } = trajectory;
  const facts = Object.fromEntries(remembered.map((name) => [name, trajectory[name]])) as Pick<Trajectory, (typeof remembered)[number]>;
  return { group: group.id, size: group.size, member: { ...facts, sample_index: group.sample_index }, span };
}

function toGroup(places: GroupPlace[], file: ScratchFile): TrajectoryGroup {
  // Stable: rollouts that have no sample index stay in the order of the run, after the others.
  const last = Number.POSITIVE_INFINITY;
  const sorted = places.toSorted((a, b) => (a.member.sample_index ?? last) - (b.member.sample_index ?? last) || 0);
  return {
    id: places[0]?.group ?? null,
    size: places.find((place) => place.size !== null)?.size ?? null,
    members: sorted.map((place) => ({ ...place.member, read: () => file.read(place.span) })),
  };
}
