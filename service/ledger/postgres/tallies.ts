/** What readers of all results keep of a set for the next one. Each is one statement. */
import type { Transaction } from "./postgres-database.ts";

export async function tallyOf(db: Transaction, set: string): Promise<string | null> {
  const found = await db.get("SELECT tally FROM tallies WHERE set_id = $1", set);
  return found === undefined ? null : String(found.tally);
}

export async function keepTally(db: Transaction, set: string, tally: string): Promise<void> {
  await db.run("INSERT INTO tallies VALUES ($1, $2) ON CONFLICT (set_id) DO UPDATE SET tally = excluded.tally", set, tally);
}
