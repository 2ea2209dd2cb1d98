/** Groups of sets with a bound on staleness, as they may be begun. Each function runs inside a transaction. */
import { groupsAllowed, lowestStep, paceOf, type TrainerPace } from "../admission.ts";
import { specOf, toAdmission } from "../from-rows.ts";
import { placesOf } from "../group-tools.ts";
import type { SetState } from "../ledger.ts";
import type { SetSpec } from "../records.ts";
import type { Database, TableRow } from "./database.ts";
import { stepOf } from "./facts.ts";
import { joinTheLine } from "./join-the-line.ts";

/** A group has up to eleven thousand rollouts. To queue more of them than this at once would hold this process up. */
const rolloutsAtOnce = 1_000;

/** Queues the rollouts of the first groups that may be begun by now. */
export function admit(db: Database, now: number): void {
  const waiting = db.all(
    `SELECT sets.* FROM sets JOIN counts ON set_id = sets.id AND what = 'rollout' AND name = 'held' AND n > 0
     WHERE NOT EXISTS (SELECT 1 FROM endings WHERE endings.set_id = sets.id AND group_key IS NULL)`,
  );
  for (const set of waiting) admitOf(db, set, now);
}

function admitOf(db: Database, set: TableRow, now: number): void {
  const id = String(set.id);
  const spec = specOf(set);
  const pace = trainerPace(db, set, stepOf(db));
  const free = (groupsAllowed(spec, pace) ?? 0) - Number(set.admitted);
  if (free <= 0) return;
  const groups = db.all(
    "SELECT key FROM groups WHERE set_id = ? AND whole IS NULL AND is_admitted = 0 AND finished < submitted ORDER BY number LIMIT ?",
    id,
    Math.min(free, Math.ceil(rolloutsAtOnce / placesOf(spec))),
  );
  joinTheLine(db, id);
  for (const { key } of groups) {
    db.run("UPDATE groups SET is_admitted = 1 WHERE set_id = ? AND key = ?", id, String(key));
    db.run("UPDATE rollouts SET state = 'queued', since = ? WHERE set_id = ? AND group_key = ? AND state = 'held'", now, id, String(key));
  }
  const { step, groups: taken } = pace.since;
  db.run("UPDATE sets SET admitted = admitted + ?, since_step = ?, since_groups = ? WHERE id = ?", groups.length, step, taken, id);
}

/** For a set with a bound. A group that was cancelled before it was begun is given to the trainer too, and counts as one that was begun. */
export function countCancelled(db: Database, id: string, keys: readonly string[]): void {
  const ended = db.run(
    "UPDATE groups SET is_admitted = 1 WHERE set_id = ? AND key IN (SELECT value FROM json_each(?)) AND is_admitted = 0 AND whole IS NOT NULL",
    id,
    JSON.stringify(keys),
  );
  db.run(
    "UPDATE sets SET admitted = admitted + ?, since_step = coalesce(since_step, ?) WHERE id = ?",
    ended,
    ended > 0 ? stepOf(db) : null,
    id,
  );
}

function trainerPace(db: Database, set: TableRow, step: number | null): TrainerPace {
  const id = String(set.id);
  const lowest = lowestStep(specOf(set), step);
  return paceOf(set, step, {
    isAnyWhole: db.get("SELECT 1 FROM groups WHERE set_id = ? AND whole IS NOT NULL LIMIT 1", id) !== undefined,
    oldest: db.get("SELECT min(step) AS step FROM groups WHERE set_id = ? AND whole IS NULL AND step >= ?", id, lowest)?.step,
  });
}

/** null: the set has no bound. */
export function admissionOf(db: Database, set: TableRow): SetState["admission"] {
  const step = stepOf(db);
  const allowed = groupsAllowed(specOf(set), trainerPace(db, set, step));
  if (allowed === null) return null;
  const held = db.get(
    "SELECT count(*) AS n FROM groups WHERE set_id = ? AND whole IS NULL AND is_admitted = 0 AND finished < submitted",
    String(set.id),
  );
  return toAdmission(set, { step, allowed, held });
}

/** The first claim of a group says at which step it was begun, and starts the clock of a cut that waits for no result. */
export function noteBegun(
  db: Database,
  { set_id, group_key, spec }: { set_id: string; group_key: string; spec: SetSpec },
  now: number,
): void {
  if (spec.max_version_lag !== null)
    db.run("UPDATE groups SET step = ? WHERE set_id = ? AND key = ? AND step IS NULL", stepOf(db), set_id, group_key);
  if (spec.straggler_cut !== null)
    db.run(
      "UPDATE groups SET cut_at = ? + cut_ms WHERE set_id = ? AND key = ? AND cut_at IS NULL AND cut_after = 0",
      now,
      set_id,
      group_key,
    );
}

/** A set of which the trainer has said nothing counts from the lowest step since its first group. */
export function noteStep(db: Database, step: number | null): void {
  if (step !== null) db.run("UPDATE sets SET since_step = min(coalesce(since_step, ?1), ?1) WHERE admitted > 0 AND since_groups = 0", step);
}
