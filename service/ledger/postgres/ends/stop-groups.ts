/** Groups that end before all their rollouts are over. Each function runs inside a transaction. */
import { cutByClock, joinedLate } from "../../group-tools.ts";
import type { Transaction } from "../connection/postgres-database.ts";
import { controlOf } from "../facts.ts";
import { lock, now } from "../tables.ts";
import { stopGroup } from "./end-rollouts.ts";

/**
 * Before one rollout of a group that may be stopped is ended. Such ends of one group come one after another, so it is known
 * whether this one stops the group, or begins what is made later of it; that is locked with it, for rollouts are locked before
 * groups here as anywhere. None that is queued is, for a claim passes over a rollout that is locked.
 */
export async function lockGroupOf(db: Transaction, rollout: string): Promise<void> {
  const own = await db.get("SELECT set_id, group_key FROM rollouts WHERE id = $1", rollout);
  if (own === undefined) return;
  const [set, key] = [String(own.set_id), String(own.group_key)];
  await lock(db, `${set}/${key}`);
  await db.run(
    `SELECT FROM rollouts WHERE set_id = $1 AND group_key = $2 AND state <> 'done' AND (id = $3 OR state = 'later' AND NOT EXISTS (
       SELECT FROM rollouts AS mates WHERE mates.set_id = $1 AND mates.group_key = $2 AND mates.state NOT IN ('done', 'later') AND mates.id <> $3
     )) ORDER BY place FOR UPDATE`,
    set,
    key,
    rollout,
  );
}

/** What was submitted into groups that had ended. */
export async function endJoinedLate(db: Transaction, set: string, keys: readonly string[]): Promise<void> {
  await db.run(
    `INSERT INTO endings (set_id, group_key, is_rest, reason, upto) SELECT $1, key, false, $3, nextval('places') FROM groups
     WHERE set_id = $1 AND key = ANY ($2) AND is_stopped AND finished < submitted ORDER BY number`,
    set,
    keys,
    joinedLate,
  );
}

/** Ends one group whose clock has run out, and returns its set; null: there is none. None is ended while a fence is shut, for that time is no rollout's own. */
export async function cutOne(db: Transaction): Promise<string | null> {
  if ((await controlOf(db)).fences.length > 0) return null;
  const late = await db.get(
    `SELECT set_id, key FROM groups WHERE whole_xid IS NULL AND cut_at <= ${now} AND NOT is_stopped ORDER BY cut_at LIMIT 1`,
  );
  if (late === undefined) return null;
  await stopGroup(db, String(late.set_id), String(late.key), cutByClock);
  return String(late.set_id);
}
