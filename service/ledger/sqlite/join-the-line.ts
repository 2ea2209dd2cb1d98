/** The place of a set among those that wait for slots. */
import type { Database } from "./database.ts";

/** A set that had nothing to do has no share saved up: it begins where the others of its priority are. Those of a lower one may have had nothing for days. */
export function joinTheLine(db: Database, id: string): void {
  if (db.get("SELECT 1 FROM rollouts WHERE set_id = ? AND state = 'queued' LIMIT 1", id) !== undefined) return;
  const others = db.get(
    `SELECT min(pass) AS pass FROM sets WHERE id <> ?1 AND priority = (SELECT priority FROM sets WHERE id = ?1)
     AND EXISTS (SELECT 1 FROM rollouts WHERE set_id = sets.id AND state = 'queued')`,
    id,
  );
  db.run("UPDATE sets SET pass = max(pass, ?) WHERE id = ?", Number(others?.pass ?? 0), id);
}
