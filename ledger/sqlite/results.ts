/** Results in their order, from a cursor on. */
import { readJson } from "../../schema/read-json.ts";
import { fromCursor, kindOfCursor, toCursor } from "../cursor.ts";
import type { WholeGroup } from "../ledger.ts";
import type { ResultRow } from "../records.ts";
import { groupId } from "../result-row.ts";
import type { Database, TableRow } from "./database.ts";
import { assertThere, setOf } from "./sets.ts";

export function results(db: Database, set: string, after: string | null, limit: number): { cursor: string; row: ResultRow }[] {
  setOf(db, set);
  const rows = db.all(
    "SELECT seq, row FROM results WHERE set_id = ? AND seq > ? ORDER BY seq LIMIT ?",
    set,
    ...fromCursor("rows", set, after),
    limit,
  );
  return rows.map((found) => ({ cursor: toCursor("rows", set, Number(found.seq)), row: rowOf(found) }));
}

export function resultOf(db: Database, set: string, rollout: string): ResultRow | null {
  assertThere(db, { set, rollout });
  const found = db.get("SELECT row FROM results WHERE rollout_id = ?", rollout);
  return found === undefined ? null : rowOf(found);
}

export function wholeGroups(db: Database, set: string, after: string | null, limit: number): WholeGroup[] {
  setOf(db, set);
  const groups = db.all(
    "SELECT * FROM groups WHERE set_id = ? AND whole > ? ORDER BY whole LIMIT ?",
    set,
    ...fromCursor("groups", set, after),
    limit,
  );
  return groups.map((group) => ({
    cursor: toCursor("groups", set, Number(group.whole)),
    group_key: String(group.key),
    group_id: groupId(set, Number(group.number)),
    group_size: Number(group.size),
    rows: db.all("SELECT row FROM results WHERE set_id = ? AND group_key = ? ORDER BY sample_index", set, String(group.key)).map(rowOf),
  }));
}

function rowOf(found: TableRow): ResultRow {
  return readJson(String(found.row)) as ResultRow;
}

/** Throws `request_invalid` for a cursor of another set. */
export function keep(db: Database, consumer: string, set: string, cursor: string): void {
  setOf(db, set);
  fromCursor(kindOfCursor(cursor), set, cursor);
  db.run(
    "INSERT INTO consumers (name, set_id, cursor) VALUES (?, ?, ?) ON CONFLICT (set_id, name) DO UPDATE SET cursor = excluded.cursor",
    consumer,
    set,
    cursor,
  );
}
