/** A rollout is over: its one row, and with it its group's count. Inside the caller's transaction. */
import { toEndedRollout, toResult } from "../from-rows.ts";
import { cutByClock, enoughStand, forksNow, hasLater, moreOf, notAllocated, nothingToFork, stands, wholeSet } from "../group-tools.ts";
import type { AttemptResult, ResultRow } from "../records.ts";
import { type EndedRollout, toResultRow } from "../result-row.ts";
import type { Database, TableRow } from "./database.ts";
import { isEndingGroup, orderEnding } from "./endings.ts";
import { controlOf, stepOf } from "./facts.ts";
import { joinTheLine } from "./join-the-line.ts";
import { nextPlace } from "./places.ts";
import { historyOf, keepHistory, setOf } from "./set-row.ts";
import { markWhole } from "./whole-groups.ts";

export function conclude(db: Database, rollout: TableRow, state: ResultRow["state"], result: AttemptResult, now: number): void {
  const [set, key] = [String(rollout.set_id), String(rollout.group_key)];
  const group = db.get(
    "SELECT groups.*, spec FROM groups JOIN sets ON sets.id = set_id WHERE set_id = ? AND groups.key = ?",
    set,
    key,
  ) as TableRow;
  const ended = toEndedRollout({ ...group, ...rollout });
  db.run("UPDATE rollouts SET state = 'done', node = NULL, since = ? WHERE id = ?", now, ended.id);
  db.run(
    "INSERT INTO results (seq, set_id, rollout_id, group_key, sample_index, state, code, row) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    nextPlace(db),
    set,
    ended.id,
    key,
    ended.sample_index,
    state,
    result.error?.code ?? null,
    JSON.stringify(toResultRow(ended, state, result, { now, step: stepOf(db) })),
  );
  countEnded(db, set, key, stands({ state, mask_reason: result.mask_reason }), now);
  if (hasLater(ended.spec) && group.is_stopped === 0) beginMore(db, ended, now);
  markWhole(db, set, [key]);
}

function countEnded(db: Database, set: string, key: string, isStanding: boolean, now: number): void {
  const group = db.get(
    `UPDATE groups SET finished = finished + 1, standing = standing + ?1,
       cut_at = CASE WHEN cut_at IS NULL AND standing + ?1 >= cut_after THEN ?2 + cut_ms ELSE cut_at END
     WHERE set_id = ?3 AND key = ?4 RETURNING standing, enough, is_stopped`,
    Number(isStanding),
    now,
    set,
    key,
  );
  const enough = group?.enough == null ? null : Number(group.enough);
  if (isStanding && enough !== null && Number(group?.standing) >= enough && group?.is_stopped === 0)
    stopGroup(db, set, key, enoughStand(enough));
}

/** When all begun rollouts of a group are over, starts as many as its forks or allocation want. */
function beginMore(db: Database, { set_id, group_key, task_id, spec }: EndedRollout, now: number): void {
  const open = db.all("SELECT * FROM rollouts WHERE set_id = ? AND group_key = ? AND state <> 'done' ORDER BY place", set_id, group_key);
  if (open.length === 0 || open.some(({ state }) => state !== "later") || isEndingGroup(db, set_id, group_key)) return;
  const rows = db.all("SELECT row AS entry FROM results WHERE set_id = ? AND group_key = ?", set_id, group_key).map(toResult);
  const isTree = spec.branching !== undefined;
  const places = open.map(({ sample_index }) => Number(sample_index));
  const more = isTree ? forksNow(spec, places, rows) : allocated(db, { set_id, task_id, spec }, rows);
  if (more === 0) {
    stopGroup(db, set_id, group_key, isTree ? nothingToFork : notAllocated);
    return;
  }
  joinTheLine(db, set_id);
  // A group whose first rollouts were cancelled before it was begun waits as it did.
  const group = db.get("SELECT is_admitted FROM groups WHERE set_id = ? AND key = ?", set_id, group_key);
  const state = spec.max_version_lag !== null && group?.is_admitted !== 1 ? "held" : "queued";
  for (const { id } of open.slice(0, more)) db.run("UPDATE rollouts SET state = ?, since = ? WHERE id = ?", state, now, String(id));
  // They have as long as the first ones had.
  db.run("UPDATE groups SET cut_at = ? + cut_ms WHERE set_id = ? AND key = ? AND cut_at IS NOT NULL", now, set_id, group_key);
  if (open.length > more && !isTree) orderEnding(db, { set: set_id, key: group_key, isRest: true, reason: notAllocated });
}

/** Records how many rollouts the policy allocates. The others end. */
function allocated(db: Database, { set_id, task_id, spec }: Pick<EndedRollout, "set_id" | "task_id" | "spec">, rows: ResultRow[]): number {
  const kept = { task: historyOf(db, set_id, task_id), set: historyOf(db, set_id, wholeSet) };
  const { more, spare, histories } = moreOf(db.allocations, spec, { task_id, rows, kept }, Number(setOf(db, set_id).spare));
  db.run("UPDATE sets SET spare = ? WHERE id = ?", spare, set_id);
  keepHistory(db, set_id, task_id, histories.task);
  keepHistory(db, set_id, wholeSet, histories.set);
  return more;
}

/** What of the group is not over is to end as cancelled, also what joins it later. */
export function stopGroup(db: Database, set: string, key: string, why: string): void {
  db.run("UPDATE groups SET is_stopped = 1 WHERE set_id = ? AND key = ?", set, key);
  orderEnding(db, { set, key, isRest: false, reason: why });
  markWhole(db, set, [key]);
}

/** A group whose clock has run out; false: there is none. None is ended while a fence is shut, for that time is no rollout's own. */
export function cutOne(db: Database, now: number): boolean {
  if (controlOf(db).fences.length > 0) return false;
  const late = db.get("SELECT set_id, key FROM groups WHERE whole IS NULL AND cut_at <= ? AND is_stopped = 0 ORDER BY cut_at LIMIT 1", now);
  if (late !== undefined) stopGroup(db, String(late.set_id), String(late.key), cutByClock);
  return late !== undefined;
}
