/**
 * A place in the order of a set's results, for a trainer's checkpoint. It names its set and its kind, because a cursor of
 * another set (a ledger that was deleted, say) or of single results among whole groups would skip rows without a word.
 */
import { AlidadeError } from "../errors.ts";

export type CursorKind = "rows" | "groups";

const letters = { rows: "r", groups: "g" } as const;

export function toCursor(kind: CursorKind, set: string, place: number): string {
  return `${set}.${letters[kind]}${place}`;
}

/** The place; 0 stands before the first. Throws `request_invalid` naming what does not fit. */
export function fromCursor(kind: CursorKind, set: string, cursor: string | null): number {
  if (cursor === null) return 0;
  const [, of, letter, place] = /^([A-Za-z0-9]{1,40})\.([rg])(\d{1,15})$/.exec(cursor) ?? [];
  if (place === undefined) throw refuse(`the cursor "${cursor.slice(0, 100)}" is not one of ours: give the last one that was served`);
  if (of !== set) throw refuse(`the cursor ${cursor} is of set ${of} and not of ${set}: results of another set begin without a cursor`);
  if (letter !== letters[kind])
    throw refuse(`the cursor ${cursor} was served ${kind === "rows" ? "with" : "without"} whole_groups: go on as it was served`);
  return Number(place);
}

function refuse(message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { param: "after" });
}
