/** The row of a set. */
import type { DatabaseRow } from "../database-row.ts";
import { refusals } from "../refusals.ts";
import type { Transaction } from "./postgres-database.ts";

/** Throws `not_found`. */
export async function setOf(db: Transaction, id: string): Promise<DatabaseRow> {
  const row = await db.get("SELECT * FROM sets WHERE id = $1", id);
  if (row === undefined) throw refusals.noSet(id);
  return row;
}
