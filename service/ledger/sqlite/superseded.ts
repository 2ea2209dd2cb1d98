/** Rollouts that are over and had other attempts than that of their result. A trigger notes each as its row comes. A parked one keeps its blobs. Inside a transaction. */
import type { Superseded } from "../expiry.ts";
import { toSuperseded } from "../from-rows.ts";
import type { AttemptName } from "../ledger.ts";
import type { Database } from "./database.ts";

export function superseded(db: Database, limit: number, before: number): Superseded[] {
  const rows = db.all(
    `SELECT superseded.set_id, superseded.rollout_id, noted, row ->> '$.payload.key' AS key
     FROM superseded LEFT JOIN results ON results.rollout_id = superseded.rollout_id WHERE noted <= ?
     AND NOT EXISTS (SELECT 1 FROM parked WHERE parked.rollout_id = superseded.rollout_id) ORDER BY noted, superseded.rollout_id LIMIT ?`,
    before,
    limit,
  );
  return rows.map(toSuperseded);
}

/** One that was noted anew meanwhile stays. */
export function settled(db: Database, all: readonly Superseded[]): void {
  for (const { rollout_id, noted } of all) db.run("DELETE FROM superseded WHERE rollout_id = ? AND noted = ?", rollout_id, noted);
}

/** A fenced attempt has ended, so its trajectory may be there by now. One whose rollout is not over is noted when that ends. */
export function noteFenced(db: Database, { rollout_id }: AttemptName, now: number): void {
  db.run(
    `INSERT INTO superseded SELECT id, set_id, ? FROM rollouts WHERE id = ? AND state = 'done'
     ON CONFLICT (rollout_id) DO UPDATE SET noted = excluded.noted`,
    now,
    rollout_id,
  );
}
