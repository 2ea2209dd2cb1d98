/** Results in their order, from a cursor on. What is committed behind a transaction that still runs is to come. */
import { fromCursor, kindOfCursor, toCursor } from "../cursor.ts";
import type { DatabaseRow } from "../database-row.ts";
import { assertServed, type Gaps } from "../expiry.ts";
import { specOf, toResult, toWholeGroup } from "../from-rows.ts";
import { placesOf } from "../group-tools.ts";
import type { KeptPlace, WholeGroup } from "../ledger.ts";
import type { ResultRow } from "../records.ts";
import { refusals } from "../refusals.ts";
import type { Look } from "./connection/looks.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { expiredPlaces } from "./expire-results.ts";
import { setOf } from "./set-row.ts";
import { assertThere } from "./sets.ts";
import { lock, settledXid } from "./tables.ts";

/** The sets of which there is more to read. A mark is a transaction: what was written before it could be read by then. */
export async function lookForResults(db: Transaction, mark: string | null): Promise<Look> {
  const since = (xid: string): string => `${xid} >= coalesce($1::bigint, settled) AND ${xid} < settled`;
  const rows = await db.all(
    `SELECT settled, set_id FROM (SELECT ${settledXid} AS settled) AS now LEFT JOIN LATERAL (
       SELECT set_id FROM results WHERE ${since("xid")} UNION SELECT set_id FROM groups WHERE ${since("whole_xid")}
       UNION SELECT id FROM sets WHERE ${since("drained_xid")}
     ) AS news ON true`,
    mark,
  );
  const sets = rows.flatMap(({ set_id }) => (set_id === null ? [] : [String(set_id)]));
  return { mark: String(rows[0]?.settled), changed: new Set(sets) };
}

type Page = { after: string | null; limit: number; gaps?: Gaps | undefined };

export async function results(db: Transaction, set: string, { after, limit, gaps }: Page): Promise<{ cursor: string; row: ResultRow }[]> {
  const place = fromCursor("rows", set, after, 2);
  const rows = await db.all(
    `SELECT xid, seq, entry, (SELECT (expired_xid, expired_seq) > ($2, $3) FROM sets WHERE id = $1) AS is_gap FROM results
     WHERE set_id = $1 AND (xid, seq) > ($2, $3) AND xid < (SELECT ${settledXid}) ORDER BY xid, seq LIMIT $4`,
    set,
    ...place,
    limit,
  );
  if (rows.length === 0 || rows[0]?.is_gap === true) assertServed(set, "rows", { place, floor: expiredPlaces(await setOf(db, set)), gaps });
  return rows.map((found) => ({ cursor: toCursor("rows", set, Number(found.xid), Number(found.seq)), row: toResult(found) }));
}

export async function resultOf(db: Transaction, set: string, rollout: string): Promise<ResultRow | null> {
  await assertThere(db, { set, rollout });
  const found = await db.get("SELECT entry FROM results WHERE rollout_id = $1", rollout);
  if (found !== undefined) return toResult(found);
  if ((await db.get("SELECT 1 FROM rollouts WHERE id = $1 AND state = 'done'", rollout)) === undefined) return null;
  // It may have ended between the two questions.
  const late = await db.get("SELECT entry FROM results WHERE rollout_id = $1", rollout);
  if (late === undefined) throw refusals.resultExpired(rollout);
  return toResult(late);
}

export async function wholeGroups(db: Transaction, set: string, { after, limit, gaps }: Page): Promise<WholeGroup[]> {
  const place = fromCursor("groups", set, after, 2);
  const groups = await db.all(
    `SELECT key, number, size, whole_xid, whole_seq FROM groups
     WHERE set_id = $1 AND (whole_xid, whole_seq) > ($2, $3) AND whole_xid IS NOT NULL AND whole_xid < (SELECT ${settledXid})
       AND (whole_xid, whole_seq) > (SELECT expired_whole_xid, expired_whole_seq FROM sets WHERE id = $1)
     ORDER BY whole_xid, whole_seq LIMIT $4`,
    set,
    ...place,
    limit,
  );
  const rows = groups.length === 0 ? new Map<string, ResultRow[]>() : await rowsOfGroups(db, set, groups);
  // Asked last: what expired meanwhile has no rows any more.
  assertServed(set, "groups", { place, floor: expiredPlaces(await setOf(db, set)), gaps });
  return groups.flatMap((group) => {
    const cursor = toCursor("groups", set, Number(group.whole_xid), Number(group.whole_seq));
    const found = rows.get(String(group.key));
    return found === undefined ? [] : [toWholeGroup(set, group, cursor, found)];
  });
}

/** By the group's key; each group's by place. */
async function rowsOfGroups(db: Transaction, set: string, groups: DatabaseRow[]): Promise<Map<string, ResultRow[]>> {
  const rows = await db.all(
    "SELECT group_key, entry FROM results WHERE set_id = $1 AND group_key = ANY ($2) ORDER BY sample_index",
    set,
    groups.map(({ key }) => String(key)),
  );
  const byKey = new Map<string, ResultRow[]>();
  for (const found of rows) byKey.set(String(found.group_key), [...(byKey.get(String(found.group_key)) ?? []), toResult(found)]);
  return byKey;
}

export async function forget(db: Transaction, consumer: string, set: string): Promise<boolean> {
  await setOf(db, set);
  return (await db.run("DELETE FROM consumers WHERE name = $1 AND set_id = $2", consumer, set)) > 0;
}

/** Inside a transaction. `step`: to which the trainer has come with what is behind the cursor. Throws `request_invalid` for a cursor of another set. */
export async function keep(db: Transaction, consumer: string, set: string, { cursor, step }: KeptPlace): Promise<void> {
  await lock(db, set);
  const known = await setOf(db, set);
  const kind = kindOfCursor(cursor);
  const place = fromCursor(kind, set, cursor, 2);
  assertServed(set, kind, { place, floor: expiredPlaces(known) });
  await db.run(
    "INSERT INTO consumers (name, set_id, cursor) VALUES ($1, $2, $3) ON CONFLICT (set_id, name) DO UPDATE SET cursor = excluded.cursor",
    consumer,
    set,
    cursor,
  );
  if (step === null) return;
  // Single rows count as the groups that they fill. No cursor is kept before rows that are expired.
  const counted =
    kind === "groups"
      ? "SELECT count(*) FROM groups WHERE set_id = $1 AND (whole_xid, whole_seq) <= ($4, $5)"
      : `SELECT count(*) + (SELECT expired_rollouts FROM sets WHERE id = $1) FROM results WHERE set_id = $1 AND (xid, seq) <= ($4, $5)`;
  const size = kind === "groups" ? 1 : placesOf(specOf(known));
  await db.run(
    `UPDATE sets SET since_step = $2, since_groups = floor((${counted}) / $3::integer) WHERE id = $1`,
    set,
    step,
    size,
    ...place,
  );
}

/** What readers of all results keep of a set for the next one. */
export async function tallyOf(db: Transaction, set: string): Promise<string | null> {
  const found = await db.get("SELECT tally FROM tallies WHERE set_id = $1", set);
  return found === undefined ? null : String(found.tally);
}

export async function keepTally(db: Transaction, set: string, tally: string): Promise<void> {
  await db.run("INSERT INTO tallies VALUES ($1, $2) ON CONFLICT (set_id) DO UPDATE SET tally = excluded.tally", set, tally);
}
