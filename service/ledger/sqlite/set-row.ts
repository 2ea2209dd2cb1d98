/** The row of a set. */
import { refusals } from "../refusals.ts";
import type { Database, TableRow } from "./database.ts";

/** Throws `not_found`. */
export function setOf(db: Database, id: string): TableRow {
  const row = db.get("SELECT * FROM sets WHERE id = ?", id);
  if (row === undefined) throw refusals.noSet(id);
  return row;
}
