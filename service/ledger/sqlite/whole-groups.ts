/** Groups of which all rollouts are over. Inside the caller's transaction. */
import type { Database } from "./database.ts";
import { nextPlaces } from "./places.ts";

/** A group is whole when all its places are over; where it takes no more, those that were asked for. `keys`: in the order in which they may be. */
export function markWhole(db: Database, set: string, keys: readonly string[]): void {
  const whole = db.all(
    `SELECT groups.key FROM json_each(?1) AS asked CROSS JOIN groups ON set_id = ?2 AND groups.key = asked.value CROSS JOIN sets ON sets.id = ?2
     WHERE whole IS NULL AND finished >= CASE WHEN is_drained = 1 OR is_stopped = 1 THEN submitted ELSE places END`,
    JSON.stringify(keys),
    set,
  );
  if (whole.length === 0) return;
  const first = nextPlaces(db, whole.length);
  for (const [at, { key }] of whole.entries())
    db.run("UPDATE groups SET whole = ? WHERE set_id = ? AND key = ?", first + at, set, String(key));
  db.run("UPDATE sets SET whole_groups = whole_groups + ? WHERE id = ?", whole.length, set);
}

/** So many at most of those that are whole because a set was drained. Returns how many. */
export function settleSome(db: Database, most: number): number {
  const set = db.get(
    `SELECT id FROM sets WHERE is_drained = 1 AND EXISTS (SELECT 1 FROM groups WHERE set_id = sets.id AND ${isUnsettled}) LIMIT 1`,
  )?.id;
  if (set === undefined) return 0;
  const partial = db.all(`SELECT key FROM groups WHERE set_id = ? AND ${isUnsettled} LIMIT ?`, String(set), most);
  markWhole(
    db,
    String(set),
    partial.map(({ key }) => String(key)),
  );
  return partial.length;
}

/** In SQL: a group has fewer rollouts than it wanted, and these are over. */
export const isUnsettled = "whole IS NULL AND submitted < places AND finished >= submitted";
