/**
 * What was asked for, who is at work on it, and what it came to. All state of the service lies here, so a service, a node
 * or a trainer may die at any moment. Three rules hold whatever dies:
 *
 *   - a submitted rollout ends in exactly one result row, also one that was cancelled or failed;
 *   - an attempt writes only while it is the rollout's current one (`finish` and `release` are fenced by its number);
 *   - results have one order, and a cursor into it neither skips nor repeats a row.
 *
 * A driver is a file beside this one; `test/contracts/ledger.test.ts` says what it promises.
 */
import type { Waitable } from "../../base/host/changes.ts";
import { mostKills, mostLives } from "../../base/host/deaths/judge-deaths.ts";
import type { ParkedReason } from "../../base/schema/reasons/parked.ts";
import type { ParkedFrom } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import type { ControlChange, ControlState, HeardNode, NodeReport } from "./control-state.ts";
import type { EnginePlaces, EngineUse } from "./engine-places.ts";
import type { Gaps, Removal, Superseded } from "./expiry.ts";
import type { AttemptResult, GroupPart, ResultRow, SetSpec } from "./records.ts";

export interface Ledger extends AsyncDisposable {
  /** The same after each restart. It labels the sandboxes of its rollouts. */
  readonly id: string;
  /** Whether other processes may have it open. Where none may, a lease that is not renewed in time is lost to no one. */
  readonly isShared: boolean;
  /** Grows when there is more to read: results, whole groups, and sets that are drained. */
  readonly version: number;
  /**
   * Resolves with the version when it is another than `seen`. Rejects with the signal's reason. `set`: the caller reads this one
   * alone, and a driver may let it sleep while there is more of other sets.
   */
  changed(seen: number, signal: AbortSignal, set?: string): Promise<number>;
  /** Grows when there may be more to claim. */
  readonly claimable: Waitable;

  /**
   * The same key and content is the same set. Throws `request_invalid` (409) for other content under the key, and a 413 where it, or
   * the sets of the namespace together, hold too much. `namespace`: whose set it is, and whose key; the operator's own (empty) where left out.
   */
  putSet(key: string, spec: SetSpec, namespace?: string): Promise<SetState>;
  /** Its id; null: the namespace has no set of this key. */
  setNamed(key: string, namespace: string): Promise<string | null>;
  /** Whose set it is, which never changes. Throws `not_found`. */
  namespaceOf(set: string): Promise<string>;
  /** Throws `not_found`. */
  set(id: string): Promise<SetState>;
  /** Those of a namespace; all where left out. */
  sets(namespace?: string): Promise<SetState[]>;
  /** So many of them at most: those with open rollouts first, and the newest of each kind. `total`: of all of them. */
  latestSets(most: number, namespace?: string): Promise<{ total: number; sets: SetState[] }>;
  /** What the set was made with. Throws `not_found`. */
  specOf(id: string): Promise<SetSpec>;
  /**
   * All parts or none. A place that is there already is not made again. Throws `request_invalid`: 409 for another task under
   * a group's key and for a drained set, 400 for a place beyond the group.
   */
  submit(set: string, parts: GroupPart[]): Promise<Submitted>;
  /**
   * Those that are not over end as `cancelled`; returns how many. None of them is claimed any more. A thousand are over when it
   * returns, those that run first, and their attempts are fenced; the others end with `endMore`. Throws `not_found`.
   */
  cancel(what: CancelOrder, reason: string): Promise<number>;
  /**
   * Goes on with what ends in parts: a cancel, a group that is stopped or was joined late, the groups of a set that is drained. Returns
   * how many ended; 0 when no more is to end, or another process is at it. What a process leaves that dies is found again.
   */
  endMore(): Promise<number>;
  /** Grows when there is more for `endMore`. */
  readonly ending: Waitable;
  /** True if nothing more will come of the set: it is drained, no rollout is open, and each result can be read by now. Throws `not_found`. */
  isOver(set: string): Promise<boolean>;
  /** Takes no more rollouts. Groups are whole with those that they have. Throws `not_found`. */
  drain(set: string): Promise<SetState>;

  /** A node of that name that was there before has died: its attempts are queued again. */
  join(node: NodeSpec): Promise<Lease>;
  /** The node goes: it is no longer among the nodes, and what it still has is queued again, not counted as lost. */
  leave(lease: Lease): Promise<void>;
  /** Renews the lease. `isLost`: the ledger took the node for dead; join again. */
  beat(lease: Lease, running: readonly AttemptName[]): Promise<Orders>;
  /** The places that the node may use from now on at these engines; none where it has lost its lease. They are given back with the lease. */
  grantPlaces(lease: Lease, uses: readonly EngineUse[]): Promise<EnginePlaces[]>;
  /** At most `free` attempts, which are the node's from now on; none where it drains or has lost its lease. */
  claim(lease: Lease, free: number, from?: ClaimedSets): Promise<Claim[]>;
  /**
   * Queues the rollout for its next attempt. `broken`: the code of the infrastructure's failure, which counts against the retries, and
   * another node takes the rollout where there is one; null: the node gives it back.
   */
  release(claim: AttemptName, broken: string | null): Promise<"queued" | "fenced">;
  /** Ends a rollout that a node died of, whatever node has it now; false: it is over, or to end, or there is none. `why`: in a sentence. */
  setAside(rollout: string, why: string): Promise<boolean>;
  /** In one transaction: the attempt is still the current one, the result row, the group's count. */
  finish(claim: AttemptName, result: AttemptResult): Promise<"accepted" | "fenced">;
  /**
   * Ends what is slower than its group by more than `straggler_cut` allows; returns how many groups. Also drops parked rollouts that
   * may go on in no later group.
   */
  cutStragglers(): Promise<number>;
  /**
   * An attempt that was cut, and may be parked, has ended on its node. From now on a rollout of a later group may go on from it, unless
   * its end is the reason why none does. Returns whether it is parked.
   */
  letGo(name: AttemptName, end: ParkedEnd): Promise<boolean>;
  /** A signal that fires ends the question, where one can be ended; its reason is thrown. */
  nodes(signal?: AbortSignal): Promise<NodeState[]>;
  /** What keeps results from being read, or old rows from being removed, beside the ledger: each with what it is and how it is ended. */
  heldBack(signal?: AbortSignal): Promise<string[]>;
  /** Throws `not_found`. */
  drainNode(name: string): Promise<void>;
  /** Queues what nodes had that missed their lease; returns their names. */
  expire(): Promise<string[]>;

  /**
   * Rows after the cursor (null: from the beginning), in order. Throws `request_invalid` for a cursor of another set or kind, and
   * `not_found` (410) for one that is before what is expired, unless `gaps` is "skip".
   */
  results(set: string, after: string | null, limit: number, gaps?: Gaps): Promise<{ cursor: string; row: ResultRow }[]>;
  /** A rollout's row; null: it is not over. Throws `not_found`, with 410 for one that is expired. */
  result(set: string, rollout: string): Promise<ResultRow | null>;
  /** Groups with all their rows by place, in the order in which they became whole; a cursor of these is not one of `results`. */
  wholeGroups(set: string, after: string | null, limit: number, gaps?: Gaps): Promise<WholeGroup[]>;
  /** What a reader of all results of the set has added up, for the next one: its own words; null: nothing yet. */
  tallyOf(set: string): Promise<string | null>;
  keepTally(set: string, tally: string): Promise<void>;
  /**
   * A consumer's word on what it needs no more, which may expire (`expireResults`). With a step it says how far its training is.
   * Throws `not_found` (410) for a cursor that is before what is expired.
   */
  keep(consumer: string, set: string, place: KeptPlace): Promise<void>;
  /** The consumer has gone for good: its cursor holds nothing back. false: it has kept none. Throws `not_found` for a set. */
  forget(consumer: string, set: string): Promise<boolean>;

  /**
   * Removes rows of groups that are expired, a thousand at most; returns how many groups it began with, or 1 where it went on with them,
   * and 0 when there are no more by now. `byDefault`: after how many
   * seconds, for sets that do not say (`expire_after`); null: those keep theirs. What lies elsewhere under their rollouts' names is
   * to be removed next: it is among the `removals` until it is said to be `removed`, so whatever dies, it is found again.
   */
  expireResults(byDefault: number | null): Promise<number>;
  removals(limit: number): Promise<Removal[]>;
  removed(all: readonly Removal[]): Promise<void>;
  /**
   * Rollouts that are over for so many seconds, and had an attempt beside the one of their result: one that was fenced or replaced, and
   * may have left a trajectory. Each is among them until it is said to be `settled`; it comes again when a fenced attempt ends later.
   */
  superseded(limit: number, seconds: number): Promise<Superseded[]>;
  settled(all: readonly Superseded[]): Promise<void>;

  /** Grows with each order to the nodes. */
  readonly ordered: Waitable;
  /** Grows with each report of a node, with each order, and when a node comes or goes. */
  readonly answered: Waitable;
  control(signal?: AbortSignal): Promise<ControlState>;
  /** One order at a time; `order` is its number. What `change` throws is thrown, and nothing is changed. */
  order(change: ControlChange): Promise<ControlState>;
  /** What this node has carried out. It is not heard where it has lost its lease. */
  report(lease: Lease, report: NodeReport): Promise<void>;
  /** All nodes that were not found dead. */
  reports(signal?: AbortSignal): Promise<HeardNode[]>;
}

export type CancelOrder = { set: string; group?: string; rollout?: string };

/** `step`: the policy step to which training on what is behind the cursor has come; null: it is not said. */
export type KeptPlace = { cursor: string; step: number | null };

export type Submitted = { groups: number; rollouts: number; rollout_ids: string[] };

export type SetState = {
  set_id: string;
  key: string;
  /** Whose set it is; empty: the operator's own. */
  namespace: string;
  spec: SetSpec;
  is_drained: boolean;
  /** As `isOver` says. */
  is_over: boolean;
  /** Rollouts of it are still to end as cancelled: none of them is claimed, and each has its row when this is false. */
  is_cancelling: boolean;
  /**
   * Groups that were begun, that may be by now, and that wait for a later policy step. null: the set has no max_version_lag.
   */
  admission: { policy_step: number | null; groups_begun: number; groups_allowed: number; groups_held: number } | null;
  /** held: not queued before the trainer's step allows it, or the first results of their group are there (`allocation`). */
  rollouts: { held: number; queued: number; running: number; completed: number; failed: number; cancelled: number };
  groups: { open: number; whole: number };
  /** Milliseconds that the oldest one has been in this state; null: there is none. */
  oldest: { queued_ms: number | null; running_ms: number | null };
  /** Error code -> rollouts that ended with it. */
  failures: Record<string, number>;
  /** Consumer -> its cursor. */
  consumers: Record<string, string>;
  /**
   * null: the set parks none. `leaving`: their nodes still end them. `waiting`: for a later group. `taken_up`: a rollout of a later group
   * went on from them. `ended`: the others, by why they go on in none (`base/schema/reasons/parked.ts`).
   */
  parked: { leaving: number; waiting: number; taken_up: number; ended: Record<string, number> } | null;
  /** What was removed (`expire_after`), which all counts here still count, and the cursors from which on results are served; null: nothing. */
  expired: { groups: number; rollouts: number; cursors: { rows: string; groups: string } } | null;
};

/** `blameless`: attempts that ended when the node died, and are not blamed for its death (`base/host/deaths/`). */
export type NodeSpec = { name: string; slots: number; blameless?: readonly AttemptName[] };

/** A node's right to claim. `epoch` is new with each join. */
export type Lease = { node: string; epoch: number; seconds: number };

export type NodeState = {
  name: string;
  slots: number;
  running: number;
  is_draining: boolean;
  lease_ms: number;
  /** Those whose calls at once are limited, as the node said with its last beat. */
  engines: EnginePlaces[];
};

/** What a slot is for: any set, in the order of priority and share, or evaluations alone. */
export type ClaimedSets = "any" | "evaluations";

/** One attempt at one rollout. */
export type AttemptName = { rollout_id: string; attempt: number };

/** What a node makes. */
export type Claim = AttemptName & {
  set_id: string;
  spec: SetSpec;
  group_key: string;
  group_id: string;
  group_size: number;
  index: number;
  task: Task;
  task_hash: string;
  /** Attempts that the infrastructure broke so far. */
  failures: number;
  /** The parked rollout that it is to go on from, and its attempt; null: it begins at the beginning. */
  parked: { from: ParkedFrom; attempt: number } | null;
};

/** `goes_on`: a finished call of it can be replayed. */
export type ParkedEnd = "goes_on" | Extract<ParkedReason, "nothing_sampled" | "broken">;

export type Orders = {
  isLost: boolean;
  isDraining: boolean;
  /** Attempts of those that run which are no longer the node's: their work is for nothing. */
  stop: AttemptName[];
};

export type WholeGroup = { cursor: string; group_key: string; group_id: string; group_size: number; rows: ResultRow[] };

/** A node that missed six beats is dead. A shorter lease would take a busy machine for one. */
export const leaseSeconds = 30;
export const beatSeconds = 5;

/** So long a rollout waits for another node than the one that broke it. One that has room would have taken it by then. */
export const elsewhereSeconds = 30;

/** How often its nodes may die before a rollout is set aside. A node that knows that it crashed says so before (`setAside`). */
export const mostLost = mostKills;

/** How often the nodes of a rollout may die in all. Deaths that are marked `blameless` count here too. */
export const mostLostInAll = mostLives;

/**
 * Rollouts that are to end as cancelled. What is submitted behind the order is not meant. `key`: those of one group; null: of the whole
 * set. `isRest`: those of the group alone that are made later, if at all.
 */
export type EndOrder = { set: string; key: string | null; isRest: boolean; reason: string };
