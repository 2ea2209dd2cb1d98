/** The row of a set, and the histories of its tasks. */
import type { DatabaseRow } from "../database-row.ts";
import { refusals } from "../refusals.ts";
import type { Transaction } from "./connection/postgres-database.ts";

/** Throws `not_found`. */
export async function setOf(db: Transaction, id: string): Promise<DatabaseRow> {
  const row = await db.get("SELECT * FROM sets WHERE id = $1", id);
  if (row === undefined) throw refusals.noSet(id);
  return row;
}

/** What groups of this task measured before, as JSON; null: nothing yet. The caller has locked the set's row. */
export async function historyOf(db: Transaction, set: string, task: string): Promise<string | null> {
  const found = await db.get("SELECT history FROM histories WHERE set_id = $1 AND task_id = $2", set, task);
  return found === undefined ? null : String(found.history);
}

export async function keepHistory(db: Transaction, set: string, task: string, history: string): Promise<void> {
  await db.run(
    "INSERT INTO histories VALUES ($1, $2, $3) ON CONFLICT (set_id, task_id) DO UPDATE SET history = excluded.history",
    set,
    task,
    history,
  );
}
