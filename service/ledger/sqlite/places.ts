/** Numbers that grow, and never come again. */
import type { Database } from "./database.ts";

/** One order for single rows and whole groups. The file has one writer, so places are committed in their order. */
export const nextPlace = (db: Database): number => nextNumber(db, "place");

/** From 1, by name. */
export const nextNumber = (db: Database, name: "place" | "epoch"): number => numbered(db, name, 1);

/** The first of so many places in a row. */
export const nextPlaces = (db: Database, count: number): number => numbered(db, "place", count) - count + 1;

function numbered(db: Database, name: "place" | "epoch", count: number): number {
  const row = db.get(
    `INSERT INTO facts (name, value) VALUES (?1, CAST(?2 AS TEXT)) ON CONFLICT (name) DO UPDATE SET value = CAST(value + ?2 AS TEXT)
     RETURNING CAST(value AS INTEGER) AS number`,
    name,
    count,
  );
  return Number(row?.number);
}
