/** What readers of all results keep of a set for the next one. Inside a transaction. */
import type { Database } from "./database.ts";

export function tallyOf(db: Database, set: string): string | null {
  const found = db.get("SELECT tally FROM tallies WHERE set_id = ?", set);
  return found === undefined ? null : String(found.tally);
}

export function keepTally(db: Database, set: string, tally: string): void {
  db.run("INSERT INTO tallies VALUES (?, ?) ON CONFLICT (set_id) DO UPDATE SET tally = excluded.tally", set, tally);
}
