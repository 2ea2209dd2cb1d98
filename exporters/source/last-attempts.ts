/**
 * Which attempt of a rollout counts: the last one, with all its members. An attempt replaces the one before it: a rollout
 * that is there twice is trained twice and weighs twice in its group's baseline.
 */
import type { Attempt } from "../../base/schema/trajectory.ts";

export class LastAttempts<Value> {
  readonly #last = new Map<string, { attempt: number; members: Map<string | null, Value> }>();

  /** The later of two entries with the same attempt and member counts. A rollout keeps the position of its first attempt. */
  add(one: Attempt, value: Value): void {
    const key = rolloutOf(one);
    const known = this.#last.get(key);
    if (known?.attempt === one.attempt) known.members.set(one.member, value);
    else if (!known || known.attempt < one.attempt) this.#last.set(key, { attempt: one.attempt, members: new Map([[one.member, value]]) });
  }

  /** What was added with the members of this one's rollout in its last attempt; empty where there was none. */
  of(one: Attempt): Value[] {
    return [...(this.#last.get(rolloutOf(one))?.members.values() ?? [])];
  }

  /** The same of every rollout. */
  all(): Value[][] {
    return Array.from(this.#last.values(), ({ members }) => [...members.values()]);
  }
}

/** Others name their rollouts as they like, maybe by their number in the group. A session of no rollout is one of its own. */
export function rolloutOf({ rollout_id, session_id, task, group }: Attempt): string {
  return JSON.stringify(rollout_id === null ? [session_id] : [task.id, group.id, rollout_id]);
}
