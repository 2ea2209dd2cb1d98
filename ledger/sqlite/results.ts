/** Results in their order, from a cursor on. */
import { type CursorKind, fromCursor, kindOfCursor, toCursor } from "../cursor.ts";
import { specOf, toResult, toWholeGroup } from "../from-rows.ts";
import { placesOf } from "../group-tools.ts";
import type { KeptPlace, WholeGroup } from "../ledger.ts";
import type { ResultRow } from "../records.ts";
import type { Database } from "./database.ts";
import { setOf } from "./set-row.ts";
import { assertThere } from "./sets.ts";

export function results(db: Database, set: string, after: string | null, limit: number): { cursor: string; row: ResultRow }[] {
  setOf(db, set);
  const rows = db.all(
    "SELECT seq, row AS entry FROM results WHERE set_id = ? AND seq > ? ORDER BY seq LIMIT ?",
    set,
    ...fromCursor("rows", set, after),
    limit,
  );
  return rows.map((found) => ({ cursor: toCursor("rows", set, Number(found.seq)), row: toResult(found) }));
}

export function resultOf(db: Database, set: string, rollout: string): ResultRow | null {
  assertThere(db, { set, rollout });
  const found = db.get("SELECT row AS entry FROM results WHERE rollout_id = ?", rollout);
  return found === undefined ? null : toResult(found);
}

export function wholeGroups(db: Database, set: string, after: string | null, limit: number): WholeGroup[] {
  setOf(db, set);
  const groups = db.all(
    "SELECT * FROM groups WHERE set_id = ? AND whole > ? ORDER BY whole LIMIT ?",
    set,
    ...fromCursor("groups", set, after),
    limit,
  );
  return groups.map((group) => {
    const rows = db.all(
      "SELECT row AS entry FROM results WHERE set_id = ? AND group_key = ? ORDER BY sample_index",
      set,
      String(group.key),
    );
    return toWholeGroup(set, group, toCursor("groups", set, Number(group.whole)), rows.map(toResult));
  });
}

/** `step`: to which the trainer has come with what is behind the cursor. Throws `request_invalid` for a cursor of another set. */
export function keep(db: Database, consumer: string, set: string, { cursor, step }: KeptPlace): void {
  setOf(db, set);
  const kind = kindOfCursor(cursor);
  const [place = 0] = fromCursor(kind, set, cursor);
  db.run(
    "INSERT INTO consumers (name, set_id, cursor) VALUES (?, ?, ?) ON CONFLICT (set_id, name) DO UPDATE SET cursor = excluded.cursor",
    consumer,
    set,
    cursor,
  );
  if (step !== null) db.run("UPDATE sets SET since_step = ?, since_groups = ? WHERE id = ?", step, groupsUpTo(db, set, kind, place), set);
}

/** Single rows count as the groups that they fill. */
function groupsUpTo(db: Database, set: string, kind: CursorKind, place: number): number {
  const found =
    kind === "groups"
      ? db.get("SELECT count(*) AS n FROM groups WHERE set_id = ? AND whole <= ?", set, place)
      : db.get("SELECT count(*) / ? AS n FROM results WHERE set_id = ? AND seq <= ?", placesOf(specOf(setOf(db, set))), set, place);
  return Number(found?.n);
}
