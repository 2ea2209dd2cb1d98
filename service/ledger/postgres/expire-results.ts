/** Results that expire, and what of them is still to be removed. */
import type { DatabaseRow } from "../database-row.ts";
import { type ExpiredPlaces, expiredOf, expiredUpTo, expiryOf, groupsAtOnce, type OldGroup, type Removal } from "../expiry.ts";
import { specOf, toRemoval } from "../from-rows.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { countOn } from "./counts.ts";
import { setOf } from "./set-row.ts";
import { lock, now, settledXid } from "./tables.ts";

/** Sets with whole groups that are served, and those of which rows are still to go. One statement, so it also runs outside of a transaction. */
export async function setsThatMayExpire(db: Transaction, byDefault: number | null): Promise<string[]> {
  const sets = await db.all(
    `SELECT * FROM (
       SELECT id, spec, created, EXISTS (SELECT FROM groups WHERE set_id = sets.id AND is_expiring) AS is_begun, EXISTS (
         SELECT FROM groups WHERE set_id = sets.id AND whole_xid IS NOT NULL AND (whole_xid, whole_seq) > (expired_whole_xid, expired_whole_seq)
       ) AS is_served FROM sets
     ) AS all_sets WHERE is_begun OR is_served ORDER BY created, id`,
  );
  return sets.filter((set) => set.is_begun === true || expiryOf(specOf(set), byDefault) !== null).map(({ id }) => String(id));
}

/** Inside a transaction. Returns how many groups it began with, or 1 where it went on; `most`: rows that go. */
export async function expireOf(db: Transaction, id: string, byDefault: number | null, most: number): Promise<number> {
  // A cursor that is kept meanwhile, or a rollout that joins a group, comes before it or behind it.
  await lock(db, id);
  if ((await takeAway(db, id, most)) > 0) return 1;
  const set = await setOf(db, id);
  const expiry = expiryOf(specOf(set), byDefault);
  if (expiry === null) return 0;
  const cursors = (await db.all("SELECT cursor FROM consumers WHERE set_id = $1", id)).map(({ cursor }) => String(cursor));
  const at = await db.get(`SELECT ${now} AS now`);
  const groups = expiredOf(await oldestOf(db, set), expiry, { set: id, cursors, now: Number(at?.now) });
  if (groups.length === 0) return 0;
  await begin(db, set, groups);
  await takeAway(db, id, most);
  return groups.length;
}

/** From now on no reader gets them. */
async function begin(db: Transaction, set: DatabaseRow, groups: readonly OldGroup[]): Promise<void> {
  const { rows, groups: whole } = expiredUpTo(expiredPlaces(set), groups);
  await db.run(
    `UPDATE sets SET expired_xid = $2, expired_seq = $3, expired_whole_xid = $4, expired_whole_seq = $5, expired_groups = expired_groups + $6
     WHERE id = $1`,
    String(set.id),
    ...rows,
    ...whole,
    groups.length,
  );
  await db.run(
    "UPDATE groups SET is_expiring = true, task = '{}' WHERE set_id = $1 AND key = ANY ($2)",
    String(set.id),
    groups.map(({ key }) => key),
  );
}

/** A group with a row that cannot be read yet is none of them. */
async function oldestOf(db: Transaction, set: DatabaseRow): Promise<OldGroup[]> {
  const rows = await db.all(
    `SELECT key, whole_xid, whole_seq, last.xid, last.seq, of_group.finished,
       EXISTS (SELECT FROM rollouts WHERE rollouts.set_id = $1 AND group_key = key AND state <> 'done') OR last.xid >= (SELECT ${settledXid}) AS is_open
     FROM groups
     CROSS JOIN LATERAL (SELECT max(finished) AS finished FROM results WHERE results.set_id = $1 AND group_key = key) AS of_group
     CROSS JOIN LATERAL (
       SELECT xid, seq FROM results WHERE results.set_id = $1 AND group_key = key ORDER BY xid DESC, seq DESC LIMIT 1
     ) AS last
     WHERE groups.set_id = $1 AND whole_xid IS NOT NULL AND (whole_xid, whole_seq) > ($2, $3) AND whole_xid < (SELECT ${settledXid})
     ORDER BY whole_xid, whole_seq LIMIT $4`,
    String(set.id),
    Number(set.expired_whole_xid),
    Number(set.expired_whole_seq),
    groupsAtOnce,
  );
  return rows.map((row) => ({
    key: String(row.key),
    whole: [Number(row.whole_xid), Number(row.whole_seq)],
    last: [Number(row.xid), Number(row.seq)],
    finished: Number(row.finished),
    isOpen: row.is_open === true,
  }));
}

/**
 * So many rows at most go, of groups that are expired; their counts stay. What lies outside of the ledger is written down before, so
 * that whatever dies, a later sweep finds it. Returns how many groups it was at work on.
 */
async function takeAway(db: Transaction, set: string, most: number): Promise<number> {
  const groups = await db.all("SELECT key FROM groups WHERE set_id = $1 AND is_expiring ORDER BY key LIMIT $2", set, groupsAtOnce);
  if (groups.length === 0) return 0;
  // No row that goes is to be counted later.
  await countOn(db, set);
  const gone = await db.all(
    `WITH gone AS (
       DELETE FROM results WHERE rollout_id IN (SELECT rollout_id FROM results WHERE set_id = $1 AND group_key = ANY ($2) LIMIT $3) RETURNING rollout_id
     ) INSERT INTO removals SELECT rollout_id, $1 FROM gone RETURNING rollout_id`,
    set,
    groups.map(({ key }) => String(key)),
    most,
  );
  await db.run("UPDATE sets SET expired_rollouts = expired_rollouts + $2 WHERE id = $1", set, gone.length);
  if (gone.length < most)
    await db.run(
      "UPDATE groups SET is_expiring = false WHERE set_id = $1 AND key = ANY ($2)",
      set,
      groups.map(({ key }) => String(key)),
    );
  return groups.length;
}

/** Up to which nothing is served any more. */
export function expiredPlaces(set: DatabaseRow): ExpiredPlaces {
  return {
    rows: [Number(set.expired_xid), Number(set.expired_seq)],
    groups: [Number(set.expired_whole_xid), Number(set.expired_whole_seq)],
  };
}

/** Not those that are parked: a later rollout may go on from their logs. */
export async function removals(db: Transaction, limit: number): Promise<Removal[]> {
  const parked = "SELECT 1 FROM parked WHERE parked.rollout_id = removals.rollout_id";
  const found = await db.all(`SELECT set_id, rollout_id FROM removals WHERE NOT EXISTS (${parked}) ORDER BY rollout_id LIMIT $1`, limit);
  return found.map(toRemoval);
}

export async function removed(db: Transaction, all: readonly Removal[]): Promise<void> {
  await db.run(
    "DELETE FROM removals WHERE rollout_id = ANY ($1)",
    all.map(({ rollout_id }) => rollout_id),
  );
}
