/** What pages read of a run: the folder of one (`RunReader`), or a set that a service holds (`view/sets`). */
import { AlidadeError } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { FidelitySummary } from "../fidelity/summary.ts";
import { asOne, type Entry, membersOf } from "./entries.ts";
import type { EntryTest } from "./filters.ts";

/**
 * `id`: the name in its address, which is its session's id, or its own if it has no session. `members`: the sessions of a
 * team, else one.
 */
export type ViewedRollout = { id: string; entry: Entry; members: Entry[] };

/** Tokens and edges of the attempts that a filter leaves. */
export type RunFidelity = Pick<FidelitySummary, "calls" | "matches"> & {
  tokens: Pick<FidelitySummary["tokens"], "sampled" | "trained" | "excluded">;
  causes: Pick<FidelitySummary["causes"][number], "cause" | "calls">[];
};

export interface ViewedRun {
  /** As pages call it. */
  readonly name: string;
  /** Another one whenever rows changed. */
  readonly version: number;
  /** The last attempt of each rollout, in the order of the run. */
  readonly rollouts: readonly ViewedRollout[];
  /** A sentence for each record that cannot be read. */
  readonly unread: readonly string[];
  /** What the rows do not say: rollouts that wait or run, rows that are left out; "" where there is nothing to say. */
  readonly note: string;
  /** Reads what is new, at most twice a second, however often it is called. */
  refresh(): Promise<void>;
  /** Calls `look` when there may be something new, until the returned function is called. */
  watch(look: () => void): () => void;
  /** Finds a rollout by the id in its address, its own id, or a session's id. Throws `not_found`. */
  find(id: string): ViewedRollout;
  /** Tells whether `find` finds the id. */
  has(id: string): boolean;
  /** Returns the rollouts of its group; without a group, only itself. */
  group(rollout: ViewedRollout): ViewedRollout[];
  /** Throws `not_found` if nothing of the session is recorded. */
  trajectory(sessionId: string): Promise<Trajectory>;
  /** Returns the bytes of a picture that the session shows. Throws `not_found`. */
  picture(sessionId: string, sha256: string): Promise<Buffer>;
  /** null if there is none. */
  record(entry: Entry): Promise<RolloutRecord | null>;
  /** Counts all attempts of the rollouts that the test leaves; null: of all rollouts. */
  fidelity(isMeant: EntryTest | null): Promise<RunFidelity>;
}

/** The rollouts of a run, found by their names. */
export class RolloutList {
  #all: ViewedRollout[] = [];
  #byId = new Map<string, ViewedRollout>();

  take(entries: readonly Entry[]): void {
    this.#all = membersOf(entries).map(toRollout);
    this.#byId = new Map(this.#all.flatMap((rollout) => namesOf(rollout).map((name) => [name, rollout] as const)));
  }

  get all(): readonly ViewedRollout[] {
    return this.#all;
  }

  find(id: string): ViewedRollout {
    const found = this.#byId.get(id);
    if (found === undefined) throw new AlidadeError("not_found", `this run holds no rollout "${id.slice(0, 200)}"`, { param: "id" });
    return found;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  group({ entry, ...rollout }: ViewedRollout): ViewedRollout[] {
    if (entry.group_id === null) return [{ entry, ...rollout }];
    const isSibling = (one: Entry): boolean => one.group_id === entry.group_id && one.task_id === entry.task_id;
    return this.#all.filter((one) => isSibling(one.entry)).toSorted((a, b) => (a.entry.sample_index ?? 0) - (b.entry.sample_index ?? 0));
  }
}

function toRollout(members: Entry[]): ViewedRollout {
  const entry = asOne(members);
  return { id: entry.session_id ?? entry.rollout_id ?? "", entry, members };
}

function namesOf({ entry, members }: ViewedRollout): string[] {
  return [entry.rollout_id ?? "", ...members.map(({ session_id }) => session_id ?? "")].filter((name) => name !== "");
}
