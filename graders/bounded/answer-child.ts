/** The other side of ask-child.ts: reads one question from stdin, and prints a line for each answer as it is known. */
import { writeSync } from "node:fs";
import { constants, DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { readJson } from "../../base/schema/read-json.ts";
import type { ChildQuestion } from "./ask-child.ts";

/** More rows, or longer ones, are no fact that a person compares. */
const mostRows = 1_000;
const mostBytes = 1024 * 1024;

/**
 * The file is the work's own: what it defines calls nothing that reaches out of it, and has as much memory as the rest here.
 * Without the last a value such as `zeroblob(1e9)` of a generated column had a gigabyte.
 */
const guards =
  "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA hard_heap_limit = 268435456";

/** SQLite writes these words itself, whatever the statement was that made the table. */
const noTable = "sql NOT LIKE 'CREATE TABLE %' AND sql NOT LIKE 'CREATE INDEX %' AND sql NOT LIKE 'CREATE UNIQUE INDEX %'";

/** At once: what is still in a buffer when the process is killed would be lost. */
function print(line: string): void {
  writeSync(1, `${line}\n`);
}

const question = readJson(await text(process.stdin)) as ChildQuestion;
print("ready");
if (question.kind === "pattern") {
  const pattern = new RegExp(question.pattern, "u");
  for (const one of question.texts) print(JSON.stringify(pattern.test(one)));
} else print(JSON.stringify(answerOf(question)));
print("end");

function answerOf({ file, query }: Extract<ChildQuestion, { kind: "query" }>): { rows: unknown[][] } | { error: string } {
  try {
    return { rows: rowsOf(file, query) };
  } catch (error) {
    return { error: String(error).slice(0, 500) };
  }
}

function openDatabase(file: string, options: { readOnly: boolean; defensive?: boolean }): DatabaseSync {
  const database = new DatabaseSync(file, { allowExtension: false, ...options });
  database.exec(guards);
  return database;
}

/** A view has the rows that its text makes up, so the copy keeps tables alone, and a query on anything else finds none. */
function keepTables(file: string): void {
  const database = openDatabase(file, { readOnly: false, defensive: false });
  try {
    const found = database.prepare(`SELECT count(*) AS count FROM sqlite_schema WHERE ${noTable}`).get();
    if (found?.count !== 0) database.exec(`PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE ${noTable}`);
  } finally {
    database.close();
  }
}

function rowsOf(file: string, query: string): unknown[][] {
  keepTables(file);
  const database = openDatabase(file, { readOnly: true });
  const allowed = new Set([constants.SQLITE_SELECT, constants.SQLITE_READ, constants.SQLITE_FUNCTION, constants.SQLITE_RECURSIVE]);
  database.setAuthorizer((action) => (allowed.has(action) ? constants.SQLITE_OK : constants.SQLITE_DENY));
  const statement = database.prepare(query);
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  const rows: unknown[][] = [];
  let bytes = 0;
  for (const row of statement.iterate() as Iterable<unknown>) {
    const plain = (row as unknown[]).map(plainValue);
    bytes += JSON.stringify(plain).length;
    if (rows.push(plain) > mostRows) throw new Error(`more than ${mostRows} rows`);
    if (bytes > mostBytes) throw new Error(`more than ${mostBytes} bytes of rows`);
  }
  return rows;
}

/** A number where it is exact, text otherwise; bytes as hex. */
function plainValue(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
}
