/** Parked rollouts (`straggler_cut` with `rest: park`). Each function runs inside a transaction. */
import type { ParkedReason } from "../../../base/schema/reasons/parked.ts";
import { specOf, toParked } from "../from-rows.ts";
import { cutByClock, parks } from "../group-tools.ts";
import type { AttemptName, Claim, ParkedEnd } from "../ledger.ts";
import { dropsOf, parkBounds } from "../parking.ts";
import type { SetSpec } from "../records.ts";
import type { Database, TableRow } from "./database.ts";
import { stepOf } from "./facts.ts";
import { setOf } from "./set-row.ts";

/** Parks those of these places that a later group may go on from, and returns their places. The caller ends all of them. */
export function park(db: Database, { spec, reason }: { spec: SetSpec; reason: string }, places: readonly number[], now: number): number[] {
  if (!parks(spec) || reason !== cutByClock) return [];
  const begun = "(state = 'running' OR state = 'queued' AND rollouts.attempt > 0 AND failures = 0)";
  const picked = `json_each(?1) AS picked JOIN rollouts ON place = picked.value AND ${begun} AND NOT ${isCancelled}`;
  const parked = db.all(`SELECT place FROM ${picked} ORDER BY place`, JSON.stringify(places)).map(({ place }) => Number(place));
  db.run(
    `INSERT INTO parked (rollout_id, set_id, task_hash, group_id, sample_index, attempt, step, since, node)
     SELECT rollouts.id, rollouts.set_id, groups.task_hash, rollouts.set_id || '-' || number, rollouts.sample_index, rollouts.attempt,
       coalesce(min(groups.step, before.step), groups.step), ?2, rollouts.node
     FROM ${picked} JOIN groups ON groups.set_id = rollouts.set_id AND groups.key = group_key LEFT JOIN parked AS before ON before.taken_by = rollouts.id`,
    JSON.stringify(places),
    now,
  );
  return parked;
}

/** In SQL: the rollout is to end by another order than the clock's. */
const isCancelled = `EXISTS (
      SELECT 1 FROM endings WHERE endings.set_id = rollouts.set_id AND rollouts.place <= upto
      AND (endings.group_key IS NULL OR endings.group_key = rollouts.group_key AND is_rest = 0 AND reason <> '${cutByClock}')
    )`;

/** What a rollout took up while it was at nothing yet waits again; what broke goes on in no other. */
export function letGo(db: Database, { rollout_id, attempt }: AttemptName, end: ParkedEnd): boolean {
  const row = db.get("SELECT * FROM parked WHERE rollout_id = ? AND attempt = ? AND node IS NOT NULL", rollout_id, attempt);
  if (row === undefined) return false;
  if (end === "goes_on") {
    db.run("UPDATE parked SET node = NULL WHERE rollout_id = ?", rollout_id);
    return true;
  }
  db.run("DELETE FROM parked WHERE rollout_id = ?", rollout_id);
  if (end === "nothing_sampled") db.run("UPDATE parked SET taken_by = NULL WHERE taken_by = ?", rollout_id);
  else db.run("DELETE FROM parked WHERE taken_by = ?", rollout_id);
  count(db, String(row.set_id), end);
  return false;
}

/** The node is gone, or has begun anew: what was to end on it has ended. */
export function freeParked(db: Database, node: string): void {
  db.run("UPDATE parked SET node = NULL WHERE node = ?", node);
}

/** The first attempt of a rollout takes up the one that waits longest; each later one goes on from the same. */
export function takeUp(db: Database, claim: Claim, now: number): Claim {
  const { spec, set_id, rollout_id, attempt, task_hash } = claim;
  if (!parks(spec)) return claim;
  const known = db.get("SELECT * FROM parked WHERE taken_by = ?", rollout_id);
  if (known !== undefined) return { ...claim, parked: toParked(known) };
  if (attempt > 1) return claim;
  const bounds = parkBounds(spec, { now, step: stepOf(db) });
  const taken = db.get(
    `UPDATE parked SET taken_by = ? WHERE rollout_id = (
       SELECT rollout_id FROM parked WHERE set_id = ? AND task_hash = ? AND node IS NULL AND taken_by IS NULL AND since >= ?
       AND (step IS NULL OR step >= ?) ORDER BY since, rollout_id LIMIT 1
     ) RETURNING *`,
    rollout_id,
    set_id,
    task_hash,
    bounds.since,
    bounds.step,
  );
  if (taken === undefined) return claim;
  count(db, set_id, "taken_up");
  return { ...claim, parked: toParked(taken) };
}

/** Forgets those whose later rollout is over, and drops those that may go on in no later group. `isOver`: of a set. */
export function dropParked(db: Database, isOver: (set: string) => boolean, now: number): void {
  const isTakerOver = `taken_by IN (SELECT id FROM rollouts WHERE state = 'done')
     AND NOT EXISTS (SELECT 1 FROM parked AS next WHERE next.rollout_id = parked.taken_by AND next.node IS NOT NULL)`;
  const lost = db.all(
    `SELECT parked.set_id, count(*) AS n FROM parked JOIN results ON results.rollout_id = taken_by
     WHERE ${isTakerOver} AND results.state <> 'completed' AND row ->> '$.mask_reason' IS NOT 'parked' GROUP BY parked.set_id`,
  );
  for (const { set_id, n } of lost) count(db, String(set_id), "taker_ended", Number(n));
  db.run(`DELETE FROM parked WHERE ${isTakerOver}`);
  for (const { set_id } of db.all("SELECT DISTINCT set_id FROM parked WHERE taken_by IS NULL")) {
    const set = String(set_id);
    const at = { now, step: stepOf(db), isOver: isOver(set) };
    for (const { rollout_id, reason } of dropsOf(specOf(setOf(db, set)), waitingOf(db, set), at)) {
      db.run("DELETE FROM parked WHERE rollout_id = ?", rollout_id);
      count(db, set, reason);
    }
  }
}

/** The set is cancelled. */
export function dropAllParked(db: Database, set: string, reason: ParkedReason): void {
  count(db, set, reason, db.run("DELETE FROM parked WHERE set_id = ? AND taken_by IS NULL", set));
}

function waitingOf(db: Database, set: string): TableRow[] {
  return db.all("SELECT * FROM parked WHERE set_id = ? AND taken_by IS NULL ORDER BY since DESC, rollout_id DESC", set);
}

function count(db: Database, set: string, reason: ParkedReason | "taken_up", n = 1): void {
  if (n > 0) db.run("INSERT INTO unparked VALUES (?, ?, ?) ON CONFLICT (set_id, reason) DO UPDATE SET n = n + excluded.n", set, reason, n);
}

export function parkedCounts(db: Database, set: string): { parked: TableRow[]; unparked: TableRow[] } {
  return {
    parked: db.all(
      `SELECT CASE WHEN node IS NULL THEN 'waiting' ELSE 'leaving' END AS state, count(*) AS n FROM parked
       WHERE set_id = ? AND taken_by IS NULL GROUP BY node IS NULL`,
      set,
    ),
    unparked: db.all("SELECT reason, n FROM unparked WHERE set_id = ?", set),
  };
}
