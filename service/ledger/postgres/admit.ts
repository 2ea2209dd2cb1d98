/** Groups of sets with a bound on staleness, as they may be begun. Each function runs inside a transaction. */
import { groupsAllowed, lowestStep, paceOf, type TrainerPace } from "../admission.ts";
import type { DatabaseRow } from "../database-row.ts";
import { specOf, toAdmission } from "../from-rows.ts";
import { placesOf } from "../group-tools.ts";
import type { SetState } from "../ledger.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { stepOf } from "./facts.ts";
import { joinTheLine } from "./join-the-line.ts";
import { setOf } from "./set-row.ts";
import { lock, now } from "./tables.ts";

/** A group has up to eleven thousand rollouts. A transaction that begins more of them than this ends late, and holds results back. */
const rolloutsAtOnce = 1_000;

/** In which a group waits until it may be begun. One statement, so it also runs outside of a transaction. */
export async function setsThatWait(db: Transaction): Promise<string[]> {
  const sets = await db.all(
    `SELECT id FROM sets WHERE EXISTS (SELECT FROM rollouts WHERE set_id = sets.id AND state = 'held')
     AND NOT EXISTS (SELECT FROM endings WHERE set_id = sets.id AND group_key IS NULL) ORDER BY id`,
  );
  return sets.map(({ id }) => String(id));
}

/**
 * Queues the rollouts of the set's first groups that may begin by now. They get new places, behind the last one that was claimed.
 * Returns the number of groups; 0 if there are no more.
 */
export async function admit(db: Transaction, id: string): Promise<number> {
  // Without it, rollouts that are submitted meanwhile would stay held in a group that was begun, and groups would be counted twice.
  await lock(db, id);
  const set = await setOf(db, id);
  if ((await db.get("SELECT 1 FROM endings WHERE set_id = $1 AND group_key IS NULL", id)) !== undefined) return 0;
  const spec = specOf(set);
  const pace = await trainerPace(db, set, await stepOf(db));
  const free = (groupsAllowed(spec, pace) ?? 0) - Number(set.admitted);
  if (free <= 0) return 0;
  const groups = await db.all(
    `UPDATE groups SET is_admitted = true WHERE set_id = $1 AND key IN (
       SELECT key FROM groups WHERE set_id = $1 AND whole_xid IS NULL AND NOT is_admitted AND finished < submitted ORDER BY number LIMIT $2
     ) RETURNING key`,
    id,
    Math.min(free, Math.ceil(rolloutsAtOnce / placesOf(spec))),
  );
  await joinTheLine(db, id);
  const keys = groups.map(({ key }) => String(key));
  await db.run(
    `UPDATE rollouts SET state = 'queued', is_again = false, since = ${now}, place = held.new_place
     FROM (
       SELECT id, nextval('places') AS new_place FROM (
         SELECT id FROM rollouts WHERE set_id = $1 AND state = 'held' AND group_key = ANY ($2) ORDER BY place FOR UPDATE
       ) AS in_order
     ) AS held WHERE rollouts.id = held.id`,
    id,
    keys,
  );
  // A trainer's word that came meanwhile stays.
  await db.run(
    `UPDATE sets SET admitted = admitted + $2,
       since_step = CASE WHEN since_step IS NOT DISTINCT FROM $5::bigint AND since_groups = $4 THEN $3 ELSE since_step END WHERE id = $1`,
    id,
    keys.length,
    pace.since.step,
    Number(set.since_groups),
    set.since_step ?? null,
  );
  return keys.length;
}

/** For a set with a bound. A group that was cancelled before it was begun is given to the trainer too, and counts as one that was begun. */
export async function countCancelled(db: Transaction, id: string, keys: readonly string[]): Promise<void> {
  const ended = await db.run(
    "UPDATE groups SET is_admitted = true WHERE set_id = $1 AND key = ANY ($2) AND NOT is_admitted AND whole_xid IS NOT NULL",
    id,
    keys,
  );
  if (ended === 0) return;
  const step = await stepOf(db);
  await db.run("UPDATE sets SET admitted = admitted + $2, since_step = coalesce(since_step, $3) WHERE id = $1", id, ended, step);
}

async function trainerPace(db: Transaction, set: DatabaseRow, step: number | null): Promise<TrainerPace> {
  const found = await db.get(
    `SELECT EXISTS (SELECT FROM groups WHERE set_id = $1 AND whole_xid IS NOT NULL) AS is_any_whole,
       (SELECT min(step) FROM groups WHERE set_id = $1 AND whole_xid IS NULL AND step >= $2) AS oldest`,
    String(set.id),
    lowestStep(specOf(set), step),
  );
  return paceOf(set, step, { isAnyWhole: found?.is_any_whole === true, oldest: found?.oldest });
}

/** null: the set has no bound. */
export async function admissionOf(db: Transaction, set: DatabaseRow): Promise<SetState["admission"]> {
  if (specOf(set).max_version_lag === null) return null;
  const step = await stepOf(db);
  const allowed = groupsAllowed(specOf(set), await trainerPace(db, set, step)) ?? 0;
  const held = await db.get(
    "SELECT count(*) AS n FROM groups WHERE set_id = $1 AND whole_xid IS NULL AND NOT is_admitted AND finished < submitted",
    String(set.id),
  );
  return toAdmission(set, { step, allowed, held });
}

/** A set of which the trainer has said nothing counts from the lowest step since its first group. */
export async function noteStep(db: Transaction, step: number | null): Promise<void> {
  if (step !== null)
    await db.run("UPDATE sets SET since_step = least(coalesce(since_step, $1), $1) WHERE admitted > 0 AND since_groups = 0", step);
}
