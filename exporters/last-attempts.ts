/**
 * Which attempt of a rollout counts: the last one. Whoever runs a rollout again replaces it, and a rollout that is there
 * twice is trained twice and weighs twice in its group's baseline.
 */
import type { Attempt } from "../schema/trajectory.ts";

export class LastAttempts<Value> {
  readonly #last = new Map<string, { attempt: number; value: Value }>();

  /** Of two of the same number the later one counts. A rollout keeps the place of its first attempt. */
  add(one: Attempt, value: Value): void {
    const key = rolloutOf(one);
    const known = this.#last.get(key);
    if (!known || known.attempt <= one.attempt) this.#last.set(key, { attempt: one.attempt, value });
  }

  /** What was added with the last attempt of this one's rollout; undefined where there was none. */
  get(one: Attempt): Value | undefined {
    return this.#last.get(rolloutOf(one))?.value;
  }

  values(): Value[] {
    return Array.from(this.#last.values(), ({ value }) => value);
  }
}

/** Others name their rollouts as they like, maybe by their number in the group. A session of no rollout is one of its own. */
function rolloutOf({ rollout_id, session_id, task, group }: Attempt): string {
  return JSON.stringify(rollout_id === null ? [session_id] : [task.id, group.id, rollout_id]);
}

type Many<T> = AsyncIterable<T> | Iterable<T>;

/**
 * The trajectories without those that a later attempt replaced, by what a first look at all of them (`attempts`) told.
 * One that was not among them is kept.
 */
export async function* lastOnly<T extends Attempt>(
  trajectories: Many<T>,
  attempts: Many<Attempt>,
  onSuperseded: () => void,
): AsyncIterable<T> {
  const last = new LastAttempts<string>();
  for await (const one of attempts) if (one.rollout_id !== null) last.add(one, nameOf(one));
  for await (const one of trajectories) {
    if ((last.get(one) ?? nameOf(one)) === nameOf(one)) yield one;
    else onSuperseded();
  }
}

function nameOf({ session_id, attempt }: Attempt): string {
  return `${session_id} ${attempt}`;
}
