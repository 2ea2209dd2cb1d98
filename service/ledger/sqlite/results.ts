/** Results in their order, from a cursor on. */
import { type CursorKind, fromCursor, kindOfCursor, toCursor } from "../cursor.ts";
import { assertServed, type Gaps } from "../expiry.ts";
import { specOf, toResult, toWholeGroup } from "../from-rows.ts";
import { placesOf } from "../group-tools.ts";
import type { KeptPlace, WholeGroup } from "../ledger.ts";
import type { ResultRow } from "../records.ts";
import { refusals } from "../refusals.ts";
import type { Database } from "./database.ts";
import { expiredPlaces } from "./expire-results.ts";
import { setOf } from "./set-row.ts";
import { assertThere } from "./sets.ts";

export function results(
  db: Database,
  set: string,
  after: string | null,
  limit: number,
  gaps: Gaps = "refuse",
): { cursor: string; row: ResultRow }[] {
  const place = fromCursor("rows", set, after);
  assertServed(set, "rows", { place, floor: expiredPlaces(setOf(db, set)), gaps });
  const rows = db.all("SELECT seq, row AS entry FROM results WHERE set_id = ? AND seq > ? ORDER BY seq LIMIT ?", set, ...place, limit);
  return rows.map((found) => ({ cursor: toCursor("rows", set, Number(found.seq)), row: toResult(found) }));
}

export function resultOf(db: Database, set: string, rollout: string): ResultRow | null {
  assertThere(db, { set, rollout });
  const found = db.get("SELECT row AS entry FROM results WHERE rollout_id = ?", rollout);
  if (found !== undefined) return toResult(found);
  if (db.get("SELECT 1 FROM rollouts WHERE id = ? AND state = 'done'", rollout) !== undefined) throw refusals.resultExpired(rollout);
  return null;
}

export function wholeGroups(db: Database, set: string, after: string | null, limit: number, gaps: Gaps = "refuse"): WholeGroup[] {
  const [place = 0] = fromCursor("groups", set, after);
  const floor = expiredPlaces(setOf(db, set));
  assertServed(set, "groups", { place: [place], floor, gaps });
  const from = Math.max(place, ...floor.groups);
  const groups = db.all("SELECT * FROM groups WHERE set_id = ? AND whole > ? ORDER BY whole LIMIT ?", set, from, limit);
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
  const kind = kindOfCursor(cursor);
  const [place = 0] = fromCursor(kind, set, cursor);
  assertServed(set, kind, { place: [place], floor: expiredPlaces(setOf(db, set)) });
  db.run(
    "INSERT INTO consumers (name, set_id, cursor) VALUES (?, ?, ?) ON CONFLICT (set_id, name) DO UPDATE SET cursor = excluded.cursor",
    consumer,
    set,
    cursor,
  );
  if (step !== null) db.run("UPDATE sets SET since_step = ?, since_groups = ? WHERE id = ?", step, groupsUpTo(db, set, kind, place), set);
}

export function forget(db: Database, consumer: string, set: string): boolean {
  setOf(db, set);
  return db.run("DELETE FROM consumers WHERE name = ? AND set_id = ?", consumer, set) > 0;
}

/** Single rows count as the groups that they fill. No cursor is kept before rows that are expired. */
function groupsUpTo(db: Database, set: string, kind: CursorKind, place: number): number {
  if (kind === "groups") return Number(db.get("SELECT count(*) AS n FROM groups WHERE set_id = ? AND whole <= ?", set, place)?.n);
  const served = Number(db.get("SELECT count(*) AS n FROM results WHERE set_id = ? AND seq <= ?", set, place)?.n);
  const known = setOf(db, set);
  return Math.floor((Number(known.expired_rollouts) + served) / placesOf(specOf(known)));
}

/** What readers of all results keep of a set for the next one. */
export function tallyOf(db: Database, set: string): string | null {
  const found = db.get("SELECT tally FROM tallies WHERE set_id = ?", set);
  return found === undefined ? null : String(found.tally);
}

export function keepTally(db: Database, set: string, tally: string): void {
  db.run("INSERT INTO tallies VALUES (?, ?) ON CONFLICT (set_id) DO UPDATE SET tally = excluded.tally", set, tally);
}
