/** Rollouts that are over and had other attempts than that of their result. Each is noted by the statement that writes its row. A parked one keeps its blobs. */
import type { Superseded } from "../expiry.ts";
import { toSuperseded } from "../from-rows.ts";
import type { AttemptName } from "../ledger.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { now } from "./tables.ts";

/** `rollouts`: a query for the ids of rollouts and sets. */
export const noteSuperseded = (rollouts: string): string =>
  `INSERT INTO superseded (rollout_id, set_id, noted) SELECT one.id, one.set_id, ${now} FROM (${rollouts}) AS one (id, set_id)
   ON CONFLICT (rollout_id) DO UPDATE SET noted = excluded.noted`;

export async function superseded(db: Transaction, limit: number, seconds: number): Promise<Superseded[]> {
  const rows = await db.all(
    `SELECT superseded.set_id, superseded.rollout_id, noted, entry::json #>> '{payload,key}' AS key
     FROM superseded LEFT JOIN results ON results.rollout_id = superseded.rollout_id WHERE noted <= ${now} - $1::bigint
     AND NOT EXISTS (SELECT FROM parked WHERE parked.rollout_id = superseded.rollout_id)
     ORDER BY noted, superseded.rollout_id LIMIT $2`,
    seconds * 1000,
    limit,
  );
  return rows.map(toSuperseded);
}

/** One that was noted anew meanwhile stays. */
export async function settled(db: Transaction, all: readonly Superseded[]): Promise<void> {
  await db.run(
    `DELETE FROM superseded USING unnest($1::text[], $2::bigint[]) AS done (id, at) WHERE rollout_id = done.id AND noted = done.at`,
    all.map(({ rollout_id }) => rollout_id),
    all.map(({ noted }) => noted),
  );
}

/** A fenced attempt has ended, so its trajectory may be there by now. One whose rollout is not over is noted when that ends. */
export async function noteFenced(db: Transaction, { rollout_id }: AttemptName): Promise<void> {
  await db.run(noteSuperseded("SELECT id, set_id FROM rollouts WHERE id = $1 AND state = 'done'"), rollout_id);
}
