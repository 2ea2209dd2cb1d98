/** The other side of ask-child.ts: reads one question from stdin, and prints a line for each answer as it is known. */
import { writeSync } from "node:fs";
import { constants, DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { readJson } from "../../schema/read-json.ts";
import type { ChildQuestion } from "./ask-child.ts";

/** More rows, or longer ones, are no fact that a person compares. */
const mostRows = 1_000;
const mostBytes = 1024 * 1024;

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

function rowsOf(file: string, query: string): unknown[][] {
  const database = new DatabaseSync(file, { readOnly: true, allowExtension: false });
  // The file is the work's own: its views and triggers may call nothing that reaches out of it.
  database.exec("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
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
