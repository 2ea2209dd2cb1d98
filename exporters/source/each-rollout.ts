/** Rollouts out of trajectories: of each the last attempt, and the sessions of a team as one. */

import type { Attempt, Trajectory } from "../../base/schema/trajectory.ts";
import { joinMembers } from "../../reconstruct/index.ts";
import { LastAttempts, rolloutOf } from "./last-attempts.ts";
import { ScratchFile, type Span } from "./scratch-file.ts";

type Many<T> = AsyncIterable<T> | Iterable<T>;

/**
 * The rollouts that a first pass over all trajectories (`attempts`) found; any other trajectory is a rollout by itself. A
 * team is complete with its last member; the others wait in a file below `scratch`.
 */
export async function* eachRollout(
  trajectories: Many<Trajectory>,
  attempts: Many<Attempt>,
  { scratch, onSuperseded }: { scratch: string; onSuperseded: () => void },
): AsyncIterable<Trajectory> {
  const last = new LastAttempts<string>();
  for await (const one of attempts) if (one.rollout_id !== null) last.add(one, nameOf(one));
  await using file = new ScratchFile(scratch);
  const waiting = new Map<string, Span[]>();
  for await (const one of trajectories) {
    const members = last.of(one);
    if (members.length > 0 && !members.includes(nameOf(one))) onSuperseded();
    else if (members.length < 2) yield joinMembers([one]);
    else {
      const key = rolloutOf(one);
      const spans = [...(waiting.get(key) ?? []), await file.write(one)];
      waiting.set(key, spans);
      if (spans.length < members.length) continue;
      waiting.delete(key);
      yield await readTeam(file, spans);
    }
  }
  // A member is missing if its log was damaged after the first look. Its reader has reported that.
  for (const spans of waiting.values()) yield await readTeam(file, spans);
}

/** The trajectories that lie there as one. */
export async function readTeam(file: ScratchFile, spans: readonly Span[]): Promise<Trajectory> {
  const members: Trajectory[] = [];
  for (const span of spans) members.push(await file.read(span));
  return joinMembers(members);
}

function nameOf({ session_id, attempt }: Attempt): string {
  return `${session_id} ${attempt}`;
}
