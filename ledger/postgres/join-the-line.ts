/** The place of a set among those that wait for slots. */
import type { Transaction } from "./postgres-database.ts";

/** A set that had nothing to do has no share saved up: it begins where the others of its priority are. Those of a lower one may have had nothing for days. */
export async function joinTheLine(db: Transaction, id: string): Promise<void> {
  const others = await db.get(
    `SELECT min(pass) AS pass FROM sets WHERE id <> $1 AND priority = (SELECT priority FROM sets WHERE id = $1)
     AND EXISTS (SELECT FROM rollouts WHERE set_id = sets.id AND state = 'queued')
     AND NOT EXISTS (SELECT FROM rollouts WHERE set_id = $1 AND state = 'queued')`,
    id,
  );
  await db.run("UPDATE sets SET pass = greatest(pass, $2) WHERE id = $1", id, Number(others?.pass ?? 0));
}
