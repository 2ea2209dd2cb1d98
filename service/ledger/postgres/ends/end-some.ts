/** A part of what is to end as cancelled (`endings`). Each function runs inside a transaction. */
import type { DatabaseRow } from "../../database-row.ts";
import { specOf } from "../../from-rows.ts";
import { type Cancelling, cancelledAlike } from "../../result-row.ts";
import { countCancelled } from "../admit.ts";
import type { Transaction } from "../connection/postgres-database.ts";
import { stepInSql } from "../facts.ts";
import { newestTurn } from "../join-the-line.ts";
import { park } from "../parked.ts";
import { setOf } from "../set-row.ts";
import { noteSuperseded } from "../superseded.ts";
import { lock, now } from "../tables.ts";
import { whole } from "./endings.ts";

/** `isDone`: all of the order are over, and it is gone. */
export type EndedPart = { ended: number; isDone: boolean };

/** Ends so many at most of what the order is for. */
export async function endSome(db: Transaction, number: number, most: number): Promise<EndedPart> {
  const known = await db.get("SELECT set_id FROM endings WHERE number = $1", number);
  if (known === undefined) return { ended: 0, isDone: true };
  await lock(db, String(known.set_id));
  const order = await db.get("SELECT * FROM endings WHERE number = $1 FOR UPDATE", number);
  if (order === undefined) return { ended: 0, isDone: true };
  const picked = await pickSome(db, order, most);
  const set = String(order.set_id);
  const ordered = { set, spec: specOf(await setOf(db, set)), reason: String(order.reason) };
  const ids = picked.map(({ id }) => String(id));
  const parked = await park(db, ordered, ids);
  const parts = Map.groupBy(picked, ({ id }) => parked.has(String(id)));
  for (const isParked of [true, false]) await writeCancelled(db, { ...ordered, isParked }, parts.get(isParked) ?? []);
  if (picked.length === most) return { ended: most, isDone: false };
  await forget(db, order);
  return { ended: picked.length, isDone: true };
}

/** Locked by their places. */
async function pickSome(db: Transaction, order: DatabaseRow, most: number): Promise<DatabaseRow[]> {
  if (order.group_key !== null) return pickOfGroup(db, order, most);
  const picked: DatabaseRow[] = [];
  for (const { from, where } of statesInOrder) {
    if (picked.length === most) break;
    const found = await db.all(
      `SELECT id, place, group_key FROM rollouts WHERE set_id = $1 AND place <= $2 AND place > $3 AND ${where} ORDER BY place LIMIT $4 FOR UPDATE`,
      String(order.set_id),
      Number(order.upto),
      from === null ? 0 : Number(order[from]),
      most - picked.length,
    );
    picked.push(...found);
    const last = found.at(-1);
    if (from !== null && last !== undefined)
      await db.run(`UPDATE endings SET ${from} = $2 WHERE number = $1`, Number(order.number), Number(last.place));
  }
  return picked;
}

/**
 * A rollout of the order passes from one of these states into a later one only, so all of them are over when none of the four is
 * found. What runs comes first, for it takes a node's time. `from`: where the places are kept up to which they are over; few are in
 * the other states.
 */
const statesInOrder = [
  { where: "state = 'running'", from: null },
  { where: "state IN ('held', 'later')", from: "waiting_from" },
  { where: "state = 'queued' AND NOT is_again", from: "queued_from" },
  { where: "state = 'queued' AND is_again", from: null },
] as const;

function pickOfGroup(db: Transaction, order: DatabaseRow, most: number): Promise<DatabaseRow[]> {
  return db.all(
    `SELECT id, place, group_key FROM rollouts WHERE set_id = $1 AND group_key = $2 AND state <> 'done' AND place <= $3
     AND (state = 'later' OR NOT $4::boolean) ORDER BY place LIMIT $5 FOR UPDATE`,
    String(order.set_id),
    String(order.group_key),
    Number(order.upto),
    order.is_rest === true,
    most,
  );
}

/** The rows are made by the server: those of a large set do not go through this process. The rollouts are locked. */
async function writeCancelled(db: Transaction, cancelling: Cancelling, picked: readonly DatabaseRow[]): Promise<void> {
  if (picked.length === 0) return;
  const { set, spec } = cancelling;
  const keys = [...new Set(picked.map(({ group_key }) => String(group_key)))];
  await db.run("SELECT FROM groups WHERE set_id = $1 AND key = ANY ($2) ORDER BY key FOR UPDATE", set, keys);
  const alike = cancelledAlike(cancelling, { now: 0, step: null });
  await db.run(
    `WITH ended AS (
       UPDATE rollouts SET state = 'done', node = NULL, since = ${now} WHERE id = ANY ($2)
       RETURNING id, place, group_key, sample_index, attempt, earlier
     ), noted AS (
       ${noteSuperseded("SELECT id, $1::text FROM ended WHERE attempt > 0")}
     ), added AS (
       INSERT INTO results (set_id, rollout_id, group_key, sample_index, state, code, entry)
       SELECT $1, id, group_key, sample_index, 'cancelled', 'cancelled', ($3::jsonb || jsonb_build_object(
         'group_key', group_key, 'group_id', $1::text || '-' || number, 'group_size', size, 'index', sample_index, 'rollout_id', id,
         'attempt', attempt, 'earlier', ${earlierAttempts}, 'task_id', task_id, 'task_hash', task_hash, 'finished', ${now},
         'policy_step', ${stepInSql}
       ))::text
       FROM ended JOIN groups ON groups.set_id = $1 AND groups.key = group_key ORDER BY place
     )
     UPDATE groups SET finished = finished + count, ${whole("finished + count >= wanted")},
       cut_at = CASE WHEN cut_at IS NULL AND standing >= cut_after THEN ${now} + cut_ms ELSE cut_at END
     FROM (SELECT group_key, count(*)::integer FROM ended GROUP BY group_key) AS more WHERE groups.set_id = $1 AND key = group_key`,
    set,
    picked.map(({ id }) => String(id)),
    JSON.stringify(alike),
  );
  if (spec.max_version_lag !== null) await countCancelled(db, set, keys);
}

/** Those before the last one, as in `toResultRow`. */
const earlierAttempts = `coalesce((
           SELECT jsonb_agg(one) FROM jsonb_array_elements(earlier::jsonb) AS one WHERE (one ->> 'attempt')::integer < attempt
         ), '[]')`;

/** Where it is a set's, all is over up to the order's place, so no claim looks there again. */
async function forget(db: Transaction, { number, set_id, group_key, upto }: DatabaseRow): Promise<void> {
  if (group_key === null)
    await db.run(
      `INSERT INTO turns (set_id, pass, upto) SELECT $1::text, coalesce(newest.pass, 0), greatest(newest.upto, $2::bigint)
       FROM (VALUES (true)) AS one LEFT JOIN LATERAL (${newestTurn("$1::text")}) AS newest ON true`,
      String(set_id),
      Number(upto),
    );
  await db.run("DELETE FROM endings WHERE number = $1", Number(number));
}
