/** The row of a set, and the histories of its tasks. */
import { refusals } from "../refusals.ts";
import type { Database, TableRow } from "./database.ts";

/** Throws `not_found`. */
export function setOf(db: Database, id: string): TableRow {
  const row = db.get("SELECT * FROM sets WHERE id = ?", id);
  if (row === undefined) throw refusals.noSet(id);
  return row;
}

/** What groups of this task measured before, as JSON; null: nothing yet. */
export function historyOf(db: Database, set: string, task: string): string | null {
  const found = db.get("SELECT history FROM histories WHERE set_id = ? AND task_id = ?", set, task);
  return found === undefined ? null : String(found.history);
}

export function keepHistory(db: Database, set: string, task: string, history: string): void {
  db.run(
    "INSERT INTO histories VALUES (?, ?, ?) ON CONFLICT (set_id, task_id) DO UPDATE SET history = excluded.history",
    set,
    task,
    history,
  );
}
