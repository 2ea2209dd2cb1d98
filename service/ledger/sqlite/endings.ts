/**
 * Rollouts that are to end as cancelled: what is open of a set, of a group, or of a group's rollouts that are made later. None of them
 * is claimed any more. They are ended in parts, a transaction each, because a transaction holds this process up. The order stays until
 * all are over: what a process leaves that dies is ended by the next one.
 */

import { specOf } from "../from-rows.ts";
import type { EndOrder } from "../ledger.ts";
import { type Cancelling, cancelledAlike } from "../result-row.ts";
import { countCancelled } from "./admit.ts";
import type { Database, TableRow } from "./database.ts";
import { stepOf } from "./facts.ts";
import { park } from "./parked.ts";
import { nextPlaces } from "./places.ts";
import { setOf } from "./set-row.ts";
import { markWhole } from "./whole-groups.ts";

export function orderEnding(db: Database, { set, key, isRest, reason }: EndOrder): void {
  const upto = Number(db.get("SELECT max(place) AS place FROM rollouts")?.place ?? 0);
  if (key === null && db.run("UPDATE endings SET upto = ? WHERE set_id = ? AND group_key IS NULL", upto, set) > 0) return;
  db.run("INSERT INTO endings (set_id, group_key, is_rest, reason, upto) VALUES (?, ?, ?, ?, ?)", set, key, Number(isRest), reason, upto);
}

/** The group is to end, or the rest of it is. */
export function isEndingGroup(db: Database, set: string, key: string): boolean {
  return db.get("SELECT 1 FROM endings WHERE set_id = ? AND (group_key IS NULL OR group_key = ?) LIMIT 1", set, key) !== undefined;
}

/** In SQL: the rollout is to end. */
export const isToEnd = `EXISTS (
      SELECT 1 FROM endings WHERE endings.set_id = rollouts.set_id AND (endings.group_key IS NULL OR endings.group_key = rollouts.group_key)
      AND (rollouts.state = 'later' OR is_rest = 0) AND rollouts.place <= upto
    )`;

/** Ends so many at most, by the orders of all sets or of one, the oldest first. Returns how many. */
export function endSome(db: Database, set: string | null, most: number, now: number): number {
  let ended = 0;
  while (ended < most) {
    const order = db.get("SELECT * FROM endings WHERE ?1 IS NULL OR set_id = ?1 ORDER BY number LIMIT 1", set);
    if (order === undefined) return ended;
    const places = pickSome(db, order, most - ended);
    const [ofSet, reason] = [String(order.set_id), String(order.reason)];
    const ordered = { set: ofSet, spec: specOf(setOf(db, ofSet)), reason };
    const parked = park(db, ordered, places, now);
    writeCancelled(db, { ...ordered, isParked: true }, parked, now);
    const others = places.filter((place) => !parked.includes(place));
    writeCancelled(db, { ...ordered, isParked: false }, others, now);
    ended += places.length;
    if (places.length === 0) db.run("DELETE FROM endings WHERE number = ?", Number(order.number));
  }
  return ended;
}

/** What runs comes first, for it takes a node's time. */
function pickSome(db: Database, { set_id, group_key, is_rest, upto }: TableRow, most: number): number[] {
  const [set, last] = [String(set_id), Number(upto)];
  const placesOf = (rows: TableRow[]): number[] => rows.map(({ place }) => Number(place));
  if (group_key !== null)
    return placesOf(
      db.all(
        `SELECT place FROM rollouts WHERE set_id = ? AND group_key = ? AND state <> 'done' AND place <= ? AND (state = 'later' OR NOT ?)
         ORDER BY place LIMIT ?`,
        set,
        String(group_key),
        last,
        Number(is_rest),
        most,
      ),
    );
  const running = placesOf(
    db.all("SELECT place FROM rollouts WHERE set_id = ? AND state = 'running' AND place <= ? ORDER BY place LIMIT ?", set, last, most),
  );
  if (running.length > 0) return running;
  return placesOf(
    db.all("SELECT place FROM rollouts WHERE set_id = ? AND state <> 'done' AND place <= ? ORDER BY place LIMIT ?", set, last, most),
  );
}

function writeCancelled(db: Database, cancelling: Cancelling, places: readonly number[], now: number): void {
  if (places.length === 0) return;
  const { set, spec } = cancelling;
  const alike = cancelledAlike(cancelling, { now, step: stepOf(db) });
  const picked = JSON.stringify(places);
  db.run(
    `INSERT INTO results (seq, set_id, rollout_id, group_key, sample_index, state, code, row)
     SELECT ?1 + row_number() OVER (ORDER BY place), rollouts.set_id, rollouts.id, group_key, sample_index, 'cancelled', 'cancelled',
       ?2 || ',' || substr(json_object(
         'group_key', group_key, 'group_id', rollouts.set_id || '-' || number, 'group_size', size, 'index', sample_index, 'rollout_id', rollouts.id,
         'attempt', attempt, 'earlier', ${earlierAttempts}, 'task_id', task_id, 'task_hash', task_hash
       ), 2)
     FROM json_each(?3) AS picked JOIN rollouts ON place = picked.value
     JOIN groups ON groups.set_id = rollouts.set_id AND groups.key = group_key`,
    nextPlaces(db, places.length) - 1,
    JSON.stringify(alike).slice(0, -1),
    picked,
  );
  db.run("UPDATE rollouts SET state = 'done', node = NULL, since = ? WHERE place IN (SELECT value FROM json_each(?))", now, picked);
  const groups = db.all(
    "SELECT group_key, count(*) AS n FROM rollouts WHERE place IN (SELECT value FROM json_each(?)) GROUP BY group_key ORDER BY min(place)",
    picked,
  );
  const keys = groups.map(({ group_key: key }) => String(key));
  for (const { group_key: key, n } of groups)
    db.run(
      `UPDATE groups SET finished = finished + ?1, cut_at = CASE WHEN cut_at IS NULL AND standing >= cut_after THEN ?2 + cut_ms ELSE cut_at END
       WHERE set_id = ?3 AND key = ?4`,
      Number(n),
      now,
      set,
      String(key),
    );
  markWhole(db, set, keys);
  if (spec.max_version_lag !== null) countCancelled(db, set, keys);
}

/** Those before the last one, as in `toResultRow`. */
const earlierAttempts = `CASE WHEN earlier IS NULL THEN json('[]') ELSE (
           SELECT json_group_array(json(value)) FROM json_each(earlier) WHERE value ->> 'attempt' < rollouts.attempt
         ) END`;
