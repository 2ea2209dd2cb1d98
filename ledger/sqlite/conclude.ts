/** A rollout is over: its one row, and with it its group's count. Inside the caller's transaction. */
import { readJson } from "../../schema/read-json.ts";
import type { AttemptResult, ResultRow } from "../records.ts";
import { toResultRow } from "../result-row.ts";
import type { Database, TableRow } from "./database.ts";

export function conclude(db: Database, rollout: TableRow, state: ResultRow["state"], result: AttemptResult, now: number): void {
  const [id, set, key, index] = [String(rollout.id), String(rollout.set_id), String(rollout.group_key), Number(rollout.sample_index)];
  const group = db.get("SELECT * FROM groups WHERE set_id = ? AND key = ?", set, key) as TableRow;
  const ended = {
    id,
    set_id: set,
    group_key: key,
    sample_index: index,
    attempt: Number(rollout.attempt),
    number: Number(group.number),
    size: Number(group.size),
    task_id: (readJson(String(group.task)) as { task_id: string }).task_id,
    task_hash: String(group.task_hash),
  };
  db.run("UPDATE rollouts SET state = 'done', node = NULL, since = ? WHERE id = ?", now, id);
  db.run(
    "INSERT INTO results (seq, set_id, rollout_id, group_key, sample_index, state, code, row) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    nextPlace(db),
    set,
    id,
    key,
    index,
    state,
    result.error?.code ?? null,
    JSON.stringify(toResultRow(ended, state, result, now)),
  );
  db.run("UPDATE groups SET finished = finished + 1 WHERE set_id = ? AND key = ?", set, key);
  markWhole(db, set, key);
}

/** A group is whole when all its places are over; in a drained set those that were asked for. */
export function markWhole(db: Database, set: string, key: string): void {
  const isWhole = db.get(
    `SELECT 1 FROM groups JOIN sets ON sets.id = set_id WHERE set_id = ? AND groups.key = ? AND whole IS NULL
     AND finished >= CASE is_drained WHEN 1 THEN submitted ELSE size END`,
    set,
    key,
  );
  if (isWhole !== undefined) db.run("UPDATE groups SET whole = ? WHERE set_id = ? AND key = ?", nextPlace(db), set, key);
}

/** One order for single rows and whole groups. The file has one writer, so places are committed in their order. */
const nextPlace = (db: Database): number => nextNumber(db, "place");

/** From 1, by name; the same one never comes again. */
export function nextNumber(db: Database, name: "place" | "epoch"): number {
  const row = db.get(
    "INSERT INTO facts (name, value) VALUES (?, '1') ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING CAST(value AS INTEGER) AS number",
    name,
  );
  return Number(row?.number);
}
