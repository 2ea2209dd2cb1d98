/**
 * A place in the order of a set's results, for a trainer's checkpoint. It names its set and its kind, because a cursor of
 * another set (a ledger that was deleted, say) or of single results among whole groups would skip rows without a word.
 * A driver whose order has two numbers writes them with a dash between.
 */
import { AlidadeError } from "../../base/errors.ts";

export type CursorKind = "rows" | "groups";

const letters = { rows: "r", groups: "g" } as const;

/** Fifteen digits are whole in a JavaScript number; no order of ours gets there. */
const form = /^([A-Za-z0-9]{1,40})\.([rg])(\d{1,15}(?:-\d{1,15})?)$/;

export function toCursor(kind: CursorKind, set: string, ...place: number[]): string {
  return `${set}.${letters[kind]}${place.join("-")}`;
}

/** The place, in as many numbers as the driver's order has; zeros stand before the first. Throws `request_invalid` naming what does not fit. */
export function fromCursor(kind: CursorKind, set: string, cursor: string | null, numbers = 1): number[] {
  if (cursor === null) return Array.from({ length: numbers }, () => 0);
  const [, of, letter, text = ""] = form.exec(cursor) ?? [];
  const place = text.split("-").map(Number);
  if (of === undefined || place.length !== numbers)
    throw refuse(`the cursor "${cursor.slice(0, 100)}" is not one of ours: give the last one that was served`);
  if (of !== set) throw refuse(`the cursor ${cursor} is of set ${of} and not of ${set}: results of another set begin without a cursor`);
  if (letter !== letters[kind])
    throw refuse(`the cursor ${cursor} was served ${kind === "rows" ? "with" : "without"} whole_groups: go on as it was served`);
  return place;
}

/** What the cursor itself says that it is; a text that is no cursor is of rows. */
export function kindOfCursor(cursor: string): CursorKind {
  return form.exec(cursor)?.[2] === letters.groups ? "groups" : "rows";
}

function refuse(message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { param: "after" });
}
