/** Rollouts are over: their rows, and with them the counts of their groups. Inside the caller's transaction. */
import type { DatabaseRow } from "../database-row.ts";
import { specOf } from "../from-rows.ts";
import { enoughStand, stands } from "../group-tools.ts";
import type { AttemptResult, ResultRow } from "../records.ts";
import { type EndedRollout, nothingMeasured, toResultRow } from "../result-row.ts";
import { stepOf } from "./facts.ts";
import type { Transaction } from "./postgres-database.ts";
import { now, ownXid } from "./tables.ts";

type Ending = {
  ids: readonly string[];
  /** Only where this attempt is the one that runs; null: in any state, and the caller has locked them. */
  attempt: number | null;
  state: ResultRow["state"];
  result: AttemptResult;
};

/** Returns how many it ended. Rows are locked in one order by all: rollouts by their place, then groups by their key. */
export async function endRollouts(db: Transaction, { ids, attempt, state, result }: Ending): Promise<number> {
  const ended = await db.all(
    `UPDATE rollouts SET state = 'done', node = NULL, since = ${now} FROM groups, sets
     WHERE sets.id = rollouts.set_id AND groups.set_id = rollouts.set_id AND groups.key = group_key AND rollouts.id = ANY ($1)
     AND ($2::integer IS NULL OR (attempt = $2 AND state = 'running'))
     RETURNING rollouts.*, number, size, task_id, task_hash, spec`,
    ids,
    attempt,
  );
  if (ended.length === 0) return 0;
  await addRows(db, ended.toSorted(byPlace), state, result);
  const isStanding = stands({ state, mask_reason: result.mask_reason });
  for (const [set, key, count] of groupsOf(ended)) await countEnded(db, set, key, { count, standing: isStanding ? count : 0 });
  return ended.length;
}

const byPlace = (one: DatabaseRow, other: DatabaseRow): number => Number(one.place) - Number(other.place);

async function addRows(db: Transaction, ended: DatabaseRow[], state: ResultRow["state"], result: AttemptResult): Promise<void> {
  const step = await stepOf(db);
  const texts = (name: string): string[] => ended.map((row) => String(row[name]));
  await db.run(
    `INSERT INTO results (set_id, rollout_id, group_key, sample_index, state, code, entry)
     SELECT set_id, id, key, sample_index, $6::text, $7::text, entry
     FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::text[]) AS ended (set_id, id, key, sample_index, entry)`,
    texts("set_id"),
    texts("id"),
    texts("group_key"),
    ended.map(({ sample_index }) => Number(sample_index)),
    ended.map((row) => JSON.stringify(toResultRow(toEnded(row), state, result, { now: Number(row.since), step }))),
    state,
    result.error?.code ?? null,
  );
}

function toEnded(row: DatabaseRow): EndedRollout {
  return {
    id: String(row.id),
    set_id: String(row.set_id),
    group_key: String(row.group_key),
    sample_index: Number(row.sample_index),
    attempt: Number(row.attempt),
    number: Number(row.number),
    size: Number(row.size),
    task_id: String(row.task_id),
    task_hash: String(row.task_hash),
    spec: specOf(row),
  };
}

function groupsOf(ended: DatabaseRow[]): [set: string, key: string, count: number][] {
  const counts = new Map<string, [string, string, number]>();
  for (const { set_id, group_key } of ended) {
    const [set, key] = [String(set_id), String(group_key)];
    const id = JSON.stringify([set, key]);
    counts.set(id, [set, key, (counts.get(id)?.[2] ?? 0) + 1]);
  }
  return [...counts].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, count]) => count);
}

/** `wanted` lies in the group's own row, so a drain that comes meanwhile is seen. */
async function countEnded(db: Transaction, set: string, key: string, more: { count: number; standing: number }): Promise<void> {
  const group = await db.get(
    `UPDATE groups SET finished = finished + $3, standing = standing + $4, ${whole("finished + $3 >= wanted")},
       cut_at = CASE WHEN cut_at IS NULL AND standing + $4 >= cut_after THEN ${now} + cut_ms ELSE cut_at END
     WHERE set_id = $1 AND key = $2 RETURNING standing, enough, is_stopped`,
    set,
    key,
    more.count,
    more.standing,
  );
  const enough = group?.enough == null ? null : Number(group.enough);
  if (more.standing > 0 && enough !== null && Number(group?.standing) >= enough && group?.is_stopped === false)
    await stopGroup(db, set, key, enoughStand(enough));
}

/** A group is whole, once, when all that is wanted of it is over; `isWhole` says so in SQL. */
export function whole(isWhole: string): string {
  return `whole_xid = CASE WHEN whole_xid IS NULL AND ${isWhole} THEN ${ownXid} ELSE whole_xid END,
    whole_seq = CASE WHEN whole_xid IS NULL AND ${isWhole} THEN nextval('places') ELSE whole_seq END`;
}

/** What of the group is not over ends as cancelled, also what joins it later. The caller has locked its rollouts. */
export async function stopGroup(db: Transaction, set: string, key: string, why: string): Promise<void> {
  const ids = await openOf(db, set, [key]);
  await db.run(
    `UPDATE groups SET is_stopped = true, wanted = submitted, ${whole("finished >= submitted")} WHERE set_id = $1 AND key = $2`,
    set,
    key,
  );
  await endRollouts(db, { ids, attempt: null, state: "cancelled", result: nothingMeasured("cancelled", why) });
}

/** Locked in their order. */
export async function openOf(db: Transaction, set: string, keys: readonly string[]): Promise<string[]> {
  const open = await db.all(
    "SELECT id FROM rollouts WHERE set_id = $1 AND group_key = ANY ($2) AND state <> 'done' ORDER BY place FOR UPDATE",
    set,
    keys,
  );
  return open.map(({ id }) => String(id));
}
