/** Rollouts are over: their rows, and with them the counts of their groups. */
import type { DatabaseRow } from "../../database-row.ts";
import { toEndedRollout, toResult } from "../../from-rows.ts";
import { enoughStand, forksNow, hasLater, moreOf, notAllocated, nothingToFork, stands, wholeSet } from "../../group-tools.ts";
import type { AttemptResult, ResultRow } from "../../records.ts";
import { type EndedRollout, toResultRow } from "../../result-row.ts";
import type { Transaction } from "../connection/postgres-database.ts";
import { stepInSql } from "../facts.ts";
import { joinTheLine } from "../join-the-line.ts";
import { historyOf, keepHistory } from "../set-row.ts";
import { noteSuperseded } from "../superseded.ts";
import { now, ownXid } from "../tables.ts";
import { isEndingGroup, isToEnd, orderEnding, whole } from "./endings.ts";

type Ending = {
  /** Only where this attempt is the one that runs; null: in any state, and the caller has locked them. */
  attempt: number | null;
  state: ResultRow["state"];
  result: AttemptResult;
};

/** `now`: of the server. `step`: in force. */
type RolloutToEnd = EndedRollout & { now: number; step: number | null };

/** Inside a transaction. Returns how many it ended. Rows are locked in one order by all: rollouts by their place, then groups by their key. */
export async function endRollouts(db: Transaction, { ids, ...ending }: Ending & { ids: readonly string[] }): Promise<number> {
  const rollouts = await rolloutsToEnd(db, ids, ending.attempt);
  const groups = await writeEnds(db, rollouts, ending);
  const isStanding = stands({ state: ending.state, mask_reason: ending.result.mask_reason });
  for (const { set_id, key, standing, enough, is_stopped } of groups)
    if (isStanding && enough !== null && Number(standing) >= Number(enough) && is_stopped === false)
      await stopGroup(db, String(set_id), String(key), enoughStand(Number(enough)));
  for (const { set_id, key, is_stopped } of groups) {
    const ended = rollouts.find((one) => one.set_id === set_id && one.group_key === key);
    if (ended !== undefined && hasLater(ended.spec) && is_stopped === false) await beginMore(db, ended);
  }
  return groups.reduce((sum, { count }) => sum + Number(count), 0);
}

/**
 * What their rows say of them, which the end itself changes nothing of. Groups are locked where several may be ended: `attempt` is null.
 * The end of an attempt is none where the rollout is to end as cancelled.
 */
export async function rolloutsToEnd(db: Transaction, ids: readonly string[], attempt: number | null): Promise<RolloutToEnd[]> {
  if (ids.length === 0) return [];
  const rows = await db.all(
    `SELECT rollouts.id, rollouts.set_id, group_key, sample_index, coalesce($2::integer, attempt) AS attempt, earlier, number, size, task_id, task_hash, spec, ${now} AS now, ${stepInSql} AS step
     FROM rollouts JOIN groups ON groups.set_id = rollouts.set_id AND groups.key = group_key JOIN sets ON sets.id = rollouts.set_id
     WHERE rollouts.id = ANY ($1) ${attempt === null ? "" : `AND NOT ${isToEnd}`}
     ORDER BY groups.set_id, groups.key ${attempt === null ? "FOR UPDATE OF groups" : ""}`,
    ids,
    attempt,
  );
  return rows.map((row) => ({ ...toEndedRollout(row), now: Number(row.now), step: row.step === null ? null : Number(row.step) }));
}

/** One statement: the attempt is still ours, the rows, and the counts of the groups. Returns the groups, with how many of each it ended. */
export async function writeEnds(
  db: Transaction,
  rollouts: readonly RolloutToEnd[],
  { attempt, state, result }: Ending,
): Promise<DatabaseRow[]> {
  if (rollouts.length === 0) return [];
  return db.all(
    `WITH ended AS (
       UPDATE rollouts SET state = 'done', node = NULL, since = ${now}
       WHERE id = ANY ($1) AND ($3::integer IS NULL OR (attempt = $3 AND state = 'running'))
       RETURNING id, place, set_id, group_key, sample_index, attempt
     ), noted AS (
       ${noteSuperseded("SELECT id, set_id FROM ended WHERE attempt > 1")}
     ), added AS (
       INSERT INTO results (set_id, rollout_id, group_key, sample_index, state, code, entry)
       SELECT set_id, id, group_key, sample_index, $4::text, $5::text, entry
       FROM ended JOIN unnest($1::text[], $2::text[]) AS given (id, entry) USING (id) ORDER BY place
     )
     UPDATE groups SET finished = finished + count, standing = standing + stand, ${whole("finished + count >= wanted")},
       cut_at = CASE WHEN cut_at IS NULL AND standing + stand >= cut_after THEN ${now} + cut_ms ELSE cut_at END
     FROM (
       SELECT set_id, group_key, count(*)::integer, CASE WHEN $6::boolean THEN count(*)::integer ELSE 0 END AS stand
       FROM ended GROUP BY set_id, group_key
     ) AS more
     WHERE groups.set_id = more.set_id AND key = group_key
     RETURNING groups.set_id, key, count, standing, enough, is_stopped, whole_xid = ${ownXid} AS is_whole`,
    rollouts.map(({ id }) => id),
    rollouts.map((one) => JSON.stringify(toResultRow(one, state, result, one))),
    attempt,
    state,
    result.error?.code ?? null,
    stands({ state, mask_reason: result.mask_reason }),
  );
}

/** When all begun rollouts of a group are over, starts as many as its forks or allocation want. The caller has locked the rollouts. */
async function beginMore(db: Transaction, { spec, set_id: set, group_key: key, task_id }: EndedRollout): Promise<void> {
  const open = await db.all(
    "SELECT id, state, sample_index FROM rollouts WHERE set_id = $1 AND group_key = $2 AND state <> 'done' ORDER BY place",
    set,
    key,
  );
  if (open.length === 0 || open.some(({ state }) => state !== "later")) return;
  if ((await db.get(`SELECT ${isEndingGroup} AS is_ending`, set, key))?.is_ending === true) return;
  const rows = (await db.all("SELECT entry FROM results WHERE set_id = $1 AND group_key = $2", set, key)).map(toResult);
  const isTree = spec.branching !== undefined;
  const places = open.map(({ sample_index }) => Number(sample_index));
  const more = isTree ? forksNow(spec, places, rows) : await allocated(db, { set_id: set, task_id, spec }, rows);
  if (more === 0) return stopGroup(db, set, key, isTree ? nothingToFork : notAllocated);
  await joinTheLine(db, set);
  const ids = open.map(({ id }) => String(id));
  // A group whose first rollouts were cancelled before it was begun waits as it did.
  await db.run(
    `UPDATE rollouts SET since = ${now}, is_again = true,
       state = CASE WHEN $2::boolean AND NOT (SELECT is_admitted FROM groups WHERE set_id = $3 AND key = $4) THEN 'held' ELSE 'queued' END
     WHERE id = ANY ($1)`,
    ids.slice(0, more),
    spec.max_version_lag !== null,
    set,
    key,
  );
  // They have as long as the first ones had.
  await db.run(`UPDATE groups SET cut_at = ${now} + cut_ms WHERE set_id = $1 AND key = $2 AND cut_at IS NOT NULL`, set, key);
  if (ids.length > more && !isTree) await orderEnding(db, { set, key, isRest: true, reason: notAllocated });
}

/** Records how many rollouts the policy allocates. The others end. */
async function allocated(
  db: Transaction,
  { set_id: set, task_id, spec }: Pick<EndedRollout, "set_id" | "task_id" | "spec">,
  rows: ResultRow[],
): Promise<number> {
  const left = await db.get("SELECT spare FROM sets WHERE id = $1 FOR UPDATE", set);
  const kept = { task: await historyOf(db, set, task_id), set: await historyOf(db, set, wholeSet) };
  const { more, spare, histories } = moreOf(db.allocations, spec, { task_id, rows, kept }, Number(left?.spare));
  await db.run("UPDATE sets SET spare = $2 WHERE id = $1", set, spare);
  await keepHistory(db, set, task_id, histories.task);
  await keepHistory(db, set, wholeSet, histories.set);
  return more;
}

/** What of the group is not over is to end as cancelled, also what joins it later. */
export async function stopGroup(db: Transaction, set: string, key: string, why: string): Promise<void> {
  await db.run(
    `UPDATE groups SET is_stopped = true, wanted = submitted, ${whole("finished >= submitted")} WHERE set_id = $1 AND key = $2`,
    set,
    key,
  );
  await orderEnding(db, { set, key, isRest: false, reason: why });
}
