/** Chooses where the forks of a round begin, from the records of the group's rollouts so far. */
import type { Branching } from "../../base/schema/branching.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { EngineFacts } from "../../engines/index.ts";
import type { SessionRecording } from "../../proxy/index.ts";
import type { BranchingPolicy, ForkPlace } from "./branching-policy.ts";
import { forkPlaces } from "./fork-places.ts";

/** A finished rollout of the group. `read` reads its session; null: no fork begins from it. */
export type TreeMember = Pick<RolloutRecord, "rollout_id" | "forked_from"> & {
  reward: number | null;
  read(): Promise<SessionRecording | null>;
};

export type RoundOfForks = {
  group_id: string;
  /** Number of rounds before this one. */
  rounds: number;
  /** Most forks that may begin in this round. */
  room: number;
  branching: Branching;
  policy: BranchingPolicy;
  members: readonly TreeMember[];
  engines: readonly EngineFacts[];
};

export type ForkPoint = Pick<ForkPlace, "rollout_id" | "turn">;

/** Deterministic: the same members and engines give the same forks on every machine. Rejects with what `read` rejects. */
export async function chooseForks({ group_id, rounds, room, branching, policy, members, engines }: RoundOfForks): Promise<ForkPoint[]> {
  const places: ForkPlace[] = [];
  for (const member of members) {
    const recording = await member.read();
    if (recording === null) continue;
    const { rollout_id, reward } = member;
    const forksAt = (turn: number): number =>
      members.filter(({ forked_from }) => forked_from?.rollout_id === rollout_id && forked_from.turn === turn).length;
    places.push(...forkPlaces({ rollout_id, depth: depthOf(member, members), reward }, recording, engines, forksAt));
  }
  let drawn = 0;
  const random = (): number => Number.parseInt(hashOf([group_id, rounds, drawn++]).slice(0, 12), 16) / 2 ** 48;
  const wanted = policy.forks({ places, room, width: branching.width, turns: branching.turns, random });
  return withinBounds(wanted, places, { room, width: branching.width });
}

/** Takes the wanted places in order. Skips unknown places, and uses no place more often than `width` allows. */
export function withinBounds(
  wanted: readonly ForkPoint[],
  places: readonly ForkPlace[],
  { room, width }: { room: number; width: number },
): ForkPoint[] {
  const free = new Map(places.map((place) => [keyOf(place), width - place.forks]));
  const chosen: ForkPoint[] = [];
  for (const { rollout_id, turn } of wanted) {
    const left = free.get(keyOf({ rollout_id, turn })) ?? 0;
    if (chosen.length >= room || left <= 0) continue;
    free.set(keyOf({ rollout_id, turn }), left - 1);
    chosen.push({ rollout_id, turn });
  }
  return chosen;
}

const keyOf = ({ rollout_id, turn }: ForkPoint): string => `${rollout_id} ${turn}`;

type TreeRollout = Pick<RolloutRecord, "rollout_id" | "forked_from">;

/** Number of forks between a rollout and the task's beginning. */
export function depthOf({ forked_from }: TreeRollout, rollouts: readonly TreeRollout[]): number {
  const parent = forked_from && rollouts.find(({ rollout_id }) => rollout_id === forked_from.rollout_id);
  return parent ? 1 + depthOf(parent, rollouts) : 0;
}
