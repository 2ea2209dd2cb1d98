/** All tables of a database, row by row, against the same database at another time. Runs in the process that is killed. */
import { createHash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { MayDiffer, RowsQuestion } from "./ask-child.ts";
import { allowReads, openTables } from "./open-database.ts";

/** `count`: all that differ; `rows`: some of them, for a person. */
export type RowDifferences = { count: number; rows: string[] };

/** Evidence is read by a person. */
const mostShown = 50;
const longestShown = 300;
/** Their hashes are held in memory. A database of a task has some thousands. */
const mostRows = 500_000;
/** As much as a query may return in all. A longer row is not read, for memory holds it several times. */
const longestRow = 1024 * 1024;

/** Throws for what is wrong before: the task's own database, or what the task says of it. */
export function diffRows({ before, after, except }: RowsQuestion): RowDifferences {
  const [opened, left] = [openTables(before), openTables(after)];
  const [was, is] = [opened.database, left.database];
  const tables = { was: tablesOf(was), is: tablesOf(is) };
  for (const one of except) assertKnown(one, tables.was);
  for (const database of [was, is]) allowReads(database);
  const found = new Differences();
  if (opened.kind !== left.kind) found.add(`it was a ${opened.kind}, and is a ${left.kind}`);
  for (const table of new Set([...tables.was.keys(), ...tables.is.keys()])) {
    const columns = [tables.was.get(table), tables.is.get(table)].map((names) => JSON.stringify(names));
    if (columns[0] !== columns[1]) found.add(`the table ${table} has other columns, or was made or removed`);
    else diffTable(was, is, table, except, found);
  }
  return found;
}

class Differences implements RowDifferences {
  count = 0;
  rows: string[] = [];

  add(text: string): void {
    this.count += 1;
    if (this.rows.length < mostShown) this.rows.push(text.slice(0, longestShown));
  }
}

/** Without SQLite's own: what those count and keep follows from the others. */
function tablesOf(database: DatabaseSync): Map<string, string[]> {
  const listed = database.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
  );
  const names = listed.all().map(({ name }) => String(name));
  return new Map(
    names.map((name) => [
      name,
      database
        .prepare(`SELECT * FROM ${quoted(name)}`)
        .columns()
        .map((column) => column.name),
    ]),
  );
}

function assertKnown({ table, columns = [] }: MayDiffer, tables: Map<string, string[]>): void {
  const known = tables.get(table);
  if (known === undefined) throw new Error(`except names the table ${table}, which the database did not have`);
  const other = columns.find((column) => !known.includes(column));
  if (other !== undefined) throw new Error(`except names the column ${other}, which the table ${table} did not have`);
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function diffTable(was: DatabaseSync, is: DatabaseSync, table: string, all: MayDiffer[], found: Differences): void {
  const except = all.filter((one) => one.table === table);
  const [before, after] = [was, is].map((database) => new TableRows(database, table, except)) as [TableRows, TableRows];
  if (before.isTooLarge) throw new Error(`the table ${table} is too large to be compared`);
  if (after.isTooLarge) {
    found.add(`the table ${table} has more than ${mostRows} rows, or one of more than ${longestRow} bytes`);
    return;
  }
  const counts = new Map<string, number>();
  for (const row of before.each()) counts.set(keyOf(row), (counts.get(keyOf(row)) ?? 0) + 1);
  for (const row of after.each()) if (!take(counts, keyOf(row))) found.add(`${table}: now ${row}`);
  // What is left of them is gone.
  for (const row of before.each()) if (take(counts, keyOf(row))) found.add(`${table}: was ${row}`);
}

function take(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0;
  if (count === 0) return false;
  counts.set(key, count - 1);
  return true;
}

function keyOf(row: string): string {
  return row.length < 48 ? row : createHash("sha256").update(row).digest("base64");
}

/** The rows of a table as texts that are equal for equal rows, without what may differ. */
class TableRows {
  readonly isTooLarge: boolean;
  readonly #statement: StatementSync;
  readonly #columns: string[];
  readonly #except: MayDiffer[];

  constructor(database: DatabaseSync, table: string, except: MayDiffer[]) {
    this.#except = except;
    const marks = except.map(({ where }) => `, (${where ?? "1"})`).join("");
    this.#statement = database.prepare(`SELECT *${marks} FROM ${quoted(table)}`);
    this.#statement.setReadBigInts(true);
    this.#statement.setReturnArrays(true);
    const names = this.#statement.columns().map(({ name }) => name);
    this.#columns = names.slice(0, names.length - except.length);
    const bytes = this.#columns.map((name) => `coalesce(octet_length(${quoted(name)}), 0)`).join(" + ");
    const sizes = database.prepare(`SELECT count(*) AS rows, coalesce(max(${bytes}), 0) AS longest FROM ${quoted(table)}`).get();
    this.isTooLarge = Number(sizes?.rows) > mostRows || Number(sizes?.longest) > longestRow;
  }

  *each(): Generator<string> {
    for (const row of this.#statement.iterate() as Iterable<unknown> as Iterable<unknown[]>) {
      const holds = this.#except.filter((_, index) => isTrue(row[this.#columns.length + index]));
      if (holds.some(({ columns }) => columns === undefined)) continue;
      const free = new Set(holds.flatMap(({ columns = [] }) => columns));
      yield JSON.stringify(this.#columns.map((name, index) => (free.has(name) ? ["may differ"] : typed(row[index]))));
    }
  }
}

function isTrue(value: unknown): boolean {
  return typeof value === "bigint" ? value !== 0n : typeof value === "number" && value !== 0;
}

/** A value that no value of another type is equal to: text is text, and a number says whether it is an integer. */
function typed(value: unknown): unknown {
  if (typeof value === "bigint") return { integer: String(value) };
  if (typeof value === "number") return { real: String(value) };
  return value instanceof Uint8Array ? { hex: Buffer.from(value).toString("hex") } : value;
}
