/** Results that expire, and what of them is still to be removed. Each function runs inside a transaction. */
import { type ExpiredPlaces, expiredOf, expiredUpTo, expiryOf, groupsAtOnce, type OldGroup, type Removal } from "../expiry.ts";
import { specOf, toRemoval } from "../from-rows.ts";
import type { Database, TableRow } from "./database.ts";

/** Returns how many groups it began with, or 1 where it went on; 0: there are no more by now. `most`: rows that go. */
export function expireResults(db: Database, byDefault: number | null, most: number, now: number): number {
  if (takeAway(db, most)) return 1;
  for (const set of db.all("SELECT * FROM sets ORDER BY created, id")) {
    const groups = begin(db, set, byDefault, now);
    if (groups === 0) continue;
    takeAway(db, most);
    return groups;
  }
  return 0;
}

/** From now on no reader gets them. */
function begin(db: Database, set: TableRow, byDefault: number | null, now: number): number {
  const id = String(set.id);
  const expiry = expiryOf(specOf(set), byDefault);
  if (expiry === null) return 0;
  const cursors = db.all("SELECT cursor FROM consumers WHERE set_id = ?", id).map(({ cursor }) => String(cursor));
  const expired = (most: number) => expiredOf(oldestOf(db, set, most), expiry, { set: id, cursors, now });
  // In most sets nothing is expired, and the first group tells it: to read a hundred of each would hold this process up for seconds.
  if (expired(1).length === 0) return 0;
  const groups = expired(groupsAtOnce);
  const {
    rows: [row = 0],
    groups: [whole = 0],
  } = expiredUpTo(expiredPlaces(set), groups);
  db.run(
    "UPDATE sets SET expired_row = ?, expired_whole = ?, expired_groups = expired_groups + ? WHERE id = ?",
    row,
    whole,
    groups.length,
    id,
  );
  for (const { key } of groups) db.run("UPDATE groups SET is_expiring = 1, task = '{}' WHERE set_id = ? AND key = ?", id, key);
  return groups.length;
}

function oldestOf(db: Database, set: TableRow, most: number): OldGroup[] {
  const rows = db.all(
    `SELECT key, whole, (SELECT max(seq) FROM results WHERE results.set_id = groups.set_id AND group_key = key) AS last,
       (SELECT max(since) FROM rollouts WHERE rollouts.set_id = groups.set_id AND group_key = key) AS finished,
       EXISTS (SELECT 1 FROM rollouts WHERE rollouts.set_id = groups.set_id AND group_key = key AND state <> 'done') AS is_open
     FROM groups WHERE set_id = ? AND whole > ? ORDER BY whole LIMIT ?`,
    String(set.id),
    Number(set.expired_whole),
    most,
  );
  return rows.map(({ key, whole, last, finished, is_open }) => ({
    key: String(key),
    whole: [Number(whole)],
    last: [Number(last)],
    finished: Number(finished),
    isOpen: is_open === 1,
  }));
}

/**
 * So many rows at most go, of groups that are expired; their counts stay. What lies outside of the ledger is written down before, so
 * that whatever dies, a later sweep finds it. false: there were none.
 */
function takeAway(db: Database, most: number): boolean {
  let left = most;
  const groups = db.all("SELECT set_id, key FROM groups INDEXED BY expiring_groups WHERE is_expiring = 1 LIMIT ?", groupsAtOnce);
  for (const { set_id, key } of groups) {
    const [set, group] = [String(set_id), String(key)];
    const some = "SELECT seq FROM results WHERE set_id = ? AND group_key = ? ORDER BY sample_index LIMIT ?";
    db.run(`INSERT INTO removals SELECT rollout_id, set_id FROM results WHERE seq IN (${some})`, set, group, left);
    const gone = db.run(`DELETE FROM results WHERE seq IN (${some})`, set, group, left);
    db.run("UPDATE sets SET expired_rollouts = expired_rollouts + ? WHERE id = ?", gone, set);
    if (gone === left) break;
    left -= gone;
    db.run("UPDATE groups SET is_expiring = 0 WHERE set_id = ? AND key = ?", set, group);
  }
  return groups.length > 0;
}

/** Up to which nothing is served any more. */
export function expiredPlaces(set: TableRow): ExpiredPlaces {
  return { rows: [Number(set.expired_row)], groups: [Number(set.expired_whole)] };
}

/** Not those that are parked: a later rollout may go on from their logs. */
export function removals(db: Database, limit: number): Removal[] {
  const parked = "SELECT 1 FROM parked WHERE parked.rollout_id = removals.rollout_id";
  return db.all(`SELECT set_id, rollout_id FROM removals WHERE NOT EXISTS (${parked}) ORDER BY rollout_id LIMIT ?`, limit).map(toRemoval);
}

export function removed(db: Database, all: readonly Removal[]): void {
  for (const { rollout_id } of all) db.run("DELETE FROM removals WHERE rollout_id = ?", rollout_id);
}
