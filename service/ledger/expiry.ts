/**
 * Which results expire: those of groups that are whole, old, and behind the cursor of each consumer of their set. A group's rows go
 * together, and groups go in the order in which they became whole, so that one cursor of each kind says what is no longer served.
 * Nothing of this is one process's own: cursors and ages are the ledger's.
 */
import { type CursorKind, fromCursor, kindOfCursor, toCursor } from "./cursor.ts";
import type { SetSpec } from "./records.ts";
import { refusals } from "./refusals.ts";

/** A place in an order, in as many numbers as the driver's order has. */
type OrderPlace = readonly number[];

/** A group that is whole. */
export type OldGroup = {
  key: string;
  whole: OrderPlace;
  /** The last of its rows. */
  last: OrderPlace;
  /** Unix milliseconds at which the last of its rollouts ended. */
  finished: number;
  /** A rollout of it is not over. */
  isOpen: boolean;
};

/** A rollout that is to be removed with all that lies under its name: its row is gone already. */
export type Removal = { set_id: string; rollout_id: string };

/** A rollout that is over. `key`: its result's trajectory, which stays; null: it has none. `noted`: Unix milliseconds. */
export type Superseded = Removal & { key: string | null; noted: number };

/** What a reader gets whose cursor is before what is expired: a 410, or what is left. */
export type Gaps = "refuse" | "skip";

type Expiry = { seconds: number; unread: boolean };

/** Groups of one set that go in one transaction. */
export const groupsAtOnce = 100;

/** null: its results stay. `byDefault`: seconds, for a set that says nothing. */
export function expiryOf({ expire_after }: SetSpec, byDefault: number | null): Expiry | null {
  if (expire_after !== undefined) return expire_after;
  return byDefault === null ? null : { seconds: byDefault, unread: false };
}

/** The first of the groups, which come in the order in which they became whole. `cursors`: of the set's consumers. */
export function expiredOf(
  groups: readonly OldGroup[],
  { seconds, unread }: Expiry,
  { set, cursors, now }: { set: string; cursors: readonly string[]; now: number },
): OldGroup[] {
  const [first] = groups;
  if (first === undefined || (cursors.length === 0 && !unread)) return [];
  const kept = cursors.map((cursor) => {
    const kind = kindOfCursor(cursor);
    return { kind, place: fromCursor(kind, set, cursor, first.whole.length) };
  });
  const placeOf = (group: OldGroup, kind: CursorKind): OrderPlace => (kind === "groups" ? group.whole : group.last);
  const isNeeded = (group: OldGroup): boolean =>
    group.isOpen || group.finished > now - seconds * 1000 || kept.some(({ kind, place }) => isBefore(place, placeOf(group, kind)));
  const stays = groups.findIndex(isNeeded);
  return stays === -1 ? [...groups] : groups.slice(0, stays);
}

function isBefore(one: OrderPlace, other: OrderPlace): boolean {
  const at = one.findIndex((number, index) => number !== other[index]);
  return at !== -1 && (one[at] ?? 0) < (other[at] ?? 0);
}

/** The last places that are no longer served, of both orders; a place of an order in which nothing is expired is 0. */
export type ExpiredPlaces = Record<CursorKind, OrderPlace>;

/** `floor`, and the groups behind it. */
export function expiredUpTo(floor: ExpiredPlaces, groups: readonly OldGroup[]): ExpiredPlaces {
  return {
    rows: lastPlace(
      groups.map(({ last }) => last),
      floor.rows,
    ),
    groups: lastPlace(
      groups.map(({ whole }) => whole),
      floor.groups,
    ),
  };
}

/** Throws `not_found`, with 410 where what comes behind the place is expired. */
export function assertServed(
  set: string,
  kind: CursorKind,
  places: { place: OrderPlace; floor: ExpiredPlaces; gaps?: Gaps | undefined },
): void {
  const { place, floor, gaps = "refuse" } = places;
  if (gaps === "refuse" && isBefore(place, floor[kind])) throw refusals.isExpired(set, toCursor(kind, set, ...floor[kind]));
}

/** The last of them in their order, and of `floor`. */
function lastPlace(places: readonly OrderPlace[], floor: OrderPlace): OrderPlace {
  return places.reduce((last, place) => (isBefore(last, place) ? place : last), floor);
}
