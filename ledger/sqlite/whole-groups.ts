/** Groups of which all rollouts are over. Inside the caller's transaction. */
import type { Database } from "./database.ts";
import { nextPlace } from "./places.ts";

/** A group is whole when all its places are over; where it takes no more, those that were asked for. */
export function markWhole(db: Database, set: string, key: string): void {
  const isWhole = db.get(
    `SELECT 1 FROM groups JOIN sets ON sets.id = set_id WHERE set_id = ? AND groups.key = ? AND whole IS NULL
     AND finished >= CASE WHEN is_drained = 1 OR is_stopped = 1 THEN submitted ELSE places END`,
    set,
    key,
  );
  if (isWhole !== undefined) db.run("UPDATE groups SET whole = ? WHERE set_id = ? AND key = ?", nextPlace(db), set, key);
}

/** So many at most of those that are whole because a set was drained. Returns how many. */
export function settleSome(db: Database, most: number): number {
  const partial = db.all(
    `SELECT set_id, groups.key FROM sets JOIN groups ON groups.set_id = sets.id WHERE is_drained = 1 AND ${isUnsettled} LIMIT ?`,
    most,
  );
  for (const { set_id, key } of partial) markWhole(db, String(set_id), String(key));
  return partial.length;
}

/** In SQL: a group has fewer rollouts than it wanted, and these are over. */
export const isUnsettled = "whole IS NULL AND submitted < places AND finished >= submitted";
