/** Which attempts at which rollouts have a session: no two sessions are the same member of the same attempt. */
import { AlidadeError } from "../../base/errors.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";

type RolloutKey = Pick<SessionSpec, "task_id" | "group_id" | "rollout_id" | "member">;

/**
 * Who counts a rollout's attempts. here: the proxy, and it remembers them for good. caller: a ledger gives each number once, so what
 * is over needs no place in memory.
 */
export type AttemptCounting = "here" | "caller";

/** One session's place; a rollout has a few of them. */
type AttemptPlace = { session_id: string; attempt: number; member: string | null };

export class RolloutAttempts {
  /** Also of sessions that were sealed or deleted: their logs are exported. Those that the caller counts leave it (`release`). */
  readonly #places = new Map<string, AttemptPlace[]>();

  /**
   * Takes a place for the session, at once, so that two that come together get two. Without `attempt` it is the last
   * attempt where the member is not in it yet, else the next one. Throws `request_invalid` (409) where the place is taken.
   */
  take(session_id: string, rollout: RolloutKey, attempt: number | undefined): number {
    if (rollout.rollout_id === null) return attempt ?? 1;
    const { member } = rollout;
    const places = this.#of(rollout);
    const last = Math.max(1, ...places.map((place) => place.attempt));
    const holder = (number: number) => places.find((place) => place.attempt === number && place.member === member);
    const number = attempt ?? (holder(last) ? last + 1 : last);
    const taken = holder(number);
    if (taken) throw alreadyThere(rollout, taken);
    this.#add(rollout, { session_id, attempt: number, member });
    return number;
  }

  /** A session that the store has. */
  add(session_id: string, spec: RolloutKey & Pick<SessionSpec, "attempt">): void {
    if (spec.rollout_id !== null) this.#add(spec, { session_id, attempt: spec.attempt, member: spec.member });
  }

  /** The session could not be written down, or is over and its caller counts. */
  release(session_id: string, rollout: RolloutKey): void {
    const left = this.#of(rollout).filter((place) => place.session_id !== session_id);
    if (left.length > 0) this.#places.set(keyOf(rollout), left);
    else this.#places.delete(keyOf(rollout));
  }

  #of(rollout: RolloutKey): readonly AttemptPlace[] {
    return this.#places.get(keyOf(rollout)) ?? [];
  }

  /** A new list: one that grows in place reserves room for sixteen more, and most rollouts have one place. */
  #add(rollout: RolloutKey, place: AttemptPlace): void {
    this.#places.set(keyOf(rollout), [...this.#of(rollout), place]);
  }
}

function keyOf({ task_id, group_id, rollout_id }: RolloutKey): string {
  return JSON.stringify([task_id, group_id, rollout_id]);
}

function alreadyThere({ rollout_id, member }: RolloutKey, { session_id, attempt }: AttemptPlace): AlidadeError {
  const what = member === null ? "" : ` as its member ${member}`;
  return new AlidadeError(
    "request_invalid",
    `rollout ${rollout_id} has session ${session_id} for attempt ${attempt}${what}: leave out attempt for the next one, or name another member where several agents work on one rollout`,
    { status: 409, param: "attempt" },
  );
}
