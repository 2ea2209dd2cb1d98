/** What the rows of a database say, whichever database it is. A statement gives its columns the names that are read here. */
import { readJson } from "../../base/schema/read-json.ts";
import type { Task } from "../../base/schema/task.ts";
import type { HeardNode, NodeReport } from "./control-state.ts";
import { toCursor } from "./cursor.ts";
import type { DatabaseRow } from "./database-row.ts";
import type { EnginePlaces, NodePlaces } from "./engine-places.ts";
import type { ExpiredPlaces, Removal, Superseded } from "./expiry.ts";
import { parks } from "./group-tools.ts";
import type { Claim, NodeState, SetState, WholeGroup } from "./ledger.ts";
import type { EarlierAttempt, ResultRow, SetSpec } from "./records.ts";
import { type EndedRollout, groupId } from "./result-row.ts";
import type { KnownGroups } from "./submission.ts";

export function specOf({ spec }: DatabaseRow): SetSpec {
  return readJson(String(spec)) as SetSpec;
}

/** The row of a rollout, joined with its group and its set. */
export function toClaim(row: DatabaseRow): Claim {
  return {
    rollout_id: String(row.id),
    attempt: Number(row.attempt),
    set_id: String(row.set_id),
    spec: specOf(row),
    group_key: String(row.group_key),
    group_id: groupId(String(row.set_id), Number(row.number)),
    group_size: Number(row.size),
    index: Number(row.sample_index),
    task: readJson(String(row.task)) as Task,
    task_hash: String(row.task_hash),
    failures: Number(row.failures),
    parked: null,
  };
}

/** The row of a parked rollout. */
export function toParked({ rollout_id, attempt, group_id, sample_index, step }: DatabaseRow): NonNullable<Claim["parked"]> {
  const from = {
    rollout_id: String(rollout_id),
    group_id: String(group_id),
    sample_index: Number(sample_index),
    step: step == null ? null : Number(step),
  };
  return { from, attempt: Number(attempt) };
}

/** The row of a rollout, joined with its group and its set. */
export function toEndedRollout(row: DatabaseRow): EndedRollout {
  return {
    id: String(row.id),
    set_id: String(row.set_id),
    group_key: String(row.group_key),
    sample_index: Number(row.sample_index),
    attempt: Number(row.attempt),
    earlier: earlierOf(row),
    number: Number(row.number),
    size: Number(row.size),
    task_id: String(row.task_id),
    task_hash: String(row.task_hash),
    spec: specOf(row),
  };
}

export function toKnownGroups(rows: readonly DatabaseRow[]): KnownGroups {
  return new Map(rows.map(({ key, number, task_hash }) => [String(key), { number: Number(number), hash: String(task_hash) }]));
}

export function toRemoval({ set_id, rollout_id }: DatabaseRow): Removal {
  return { set_id: String(set_id), rollout_id: String(rollout_id) };
}

export function earlierOf({ earlier }: DatabaseRow): EarlierAttempt[] {
  return earlier == null ? [] : (readJson(String(earlier)) as EarlierAttempt[]);
}

export function toSuperseded({ set_id, rollout_id, noted, key }: DatabaseRow): Superseded {
  return { set_id: String(set_id), rollout_id: String(rollout_id), noted: Number(noted), key: key == null ? null : String(key) };
}

/** A row of an earlier version has no figures, or fewer. */
export function toResult({ entry }: DatabaseRow): ResultRow {
  const { figures, ...row } = readJson(String(entry)) as ResultRow;
  if (!figures) return { ...row, figures: null };
  const { engine_spans = null, excluded = null, causes = null } = figures;
  return { ...row, figures: { ...figures, engine_spans, excluded, causes } };
}

export function toWholeGroup(set: string, { key, number, size }: DatabaseRow, cursor: string, rows: ResultRow[]): WholeGroup {
  return { cursor, group_key: String(key), group_id: groupId(set, Number(number)), group_size: Number(size), rows };
}

export function toNodeState({ name, slots, running, is_draining, lease_ms, engines }: DatabaseRow): NodeState {
  return {
    name: String(name),
    slots: Number(slots),
    running: Number(running),
    is_draining: Boolean(is_draining),
    lease_ms: Number(lease_ms),
    engines: enginesOf(engines),
  };
}

export function toNodePlaces({ name, engines }: DatabaseRow): NodePlaces {
  return { name: String(name), engines: enginesOf(engines) };
}

function enginesOf(engines: DatabaseRow[string] | undefined): EnginePlaces[] {
  return engines == null ? [] : (readJson(String(engines)) as EnginePlaces[]);
}

export function toHeardNode({ name, report }: DatabaseRow): HeardNode {
  return { node: String(name), report: report === null ? null : (readJson(String(report)) as NodeReport) };
}

/** For a set with a bound. `held`: groups that wait. */
export function toAdmission(
  set: DatabaseRow,
  { step, allowed, held }: { step: number | null; allowed: number; held: DatabaseRow | undefined },
): SetState["admission"] {
  return { policy_step: step, groups_begun: Number(set.admitted), groups_allowed: allowed, groups_held: Number(held?.n) };
}

/** null: nothing is expired. */
export function toExpired(set: DatabaseRow, floor: ExpiredPlaces): SetState["expired"] {
  if (floor.groups[0] === 0) return null;
  const id = String(set.id);
  const cursors = { rows: toCursor("rows", id, ...floor.rows), groups: toCursor("groups", id, ...floor.groups) };
  return { groups: Number(set.expired_groups), rollouts: Number(set.expired_rollouts), cursors };
}

export type SetRows = {
  set: DatabaseRow;
  isOver: boolean;
  isCancelling: boolean;
  admission: SetState["admission"];
  /** `state`, `n`. */
  results: DatabaseRow[];
  /** Rollouts that are not over: `state`, `n`. */
  open: DatabaseRow[];
  /** The oldest one in a state, in ms; null: there is none. */
  ages: { queued: DatabaseRow[string]; running: DatabaseRow[string] };
  /** `n`, and how many are `whole`. */
  groups: DatabaseRow | undefined;
  /** `code`, `n`. */
  failures: DatabaseRow[];
  /** `name`, `cursor`. */
  consumers: DatabaseRow[];
  /** `state`, `n`. */
  parked: DatabaseRow[];
  /** `reason`, `n`; one of them is `taken_up`. */
  unparked: DatabaseRow[];
  expired: SetState["expired"];
};

export function toSetState({
  set,
  isOver,
  isCancelling,
  admission,
  results,
  open,
  ages,
  groups,
  failures,
  consumers,
  parked,
  unparked,
  expired,
}: SetRows): SetState {
  const over = new Map(results.map(counted("state")));
  const waiting = new Map(open.map(counted("state")));
  const ageIn = (state: keyof SetRows["ages"]): number | null => (ages[state] == null ? null : Number(ages[state]));
  return {
    set_id: String(set.id),
    key: String(set.key),
    namespace: String(set.namespace),
    spec: specOf(set),
    is_drained: Boolean(set.is_drained),
    is_over: isOver,
    is_cancelling: isCancelling,
    admission,
    rollouts: {
      held: (waiting.get("held") ?? 0) + (waiting.get("later") ?? 0),
      queued: waiting.get("queued") ?? 0,
      running: waiting.get("running") ?? 0,
      completed: over.get("completed") ?? 0,
      failed: over.get("failed") ?? 0,
      cancelled: over.get("cancelled") ?? 0,
    },
    groups: { open: Number(groups?.n) - Number(groups?.whole), whole: Number(groups?.whole) },
    oldest: { queued_ms: ageIn("queued"), running_ms: ageIn("running") },
    failures: Object.fromEntries(failures.map(counted("code"))),
    consumers: Object.fromEntries(consumers.map(({ name, cursor }) => [String(name), String(cursor)])),
    parked: parks(specOf(set)) ? toParkedCounts(parked, unparked) : null,
    expired,
  };
}

function toParkedCounts(parked: readonly DatabaseRow[], unparked: readonly DatabaseRow[]): SetState["parked"] {
  const held = new Map(parked.map(counted("state")));
  const { taken_up = 0, ...ended } = Object.fromEntries(unparked.map(counted("reason")));
  return { leaving: held.get("leaving") ?? 0, waiting: held.get("waiting") ?? 0, taken_up, ended };
}

const counted =
  (name: string) =>
  (row: DatabaseRow): [string, number] => [String(row[name]), Number(row.n)];
