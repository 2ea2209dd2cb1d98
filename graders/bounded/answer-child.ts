/** The other side of ask-child.ts: reads one question from stdin, and prints a line for each answer as it is known. */
import { writeSync } from "node:fs";
import { text } from "node:stream/consumers";
import { readJson } from "../../base/schema/read-json.ts";
import type { ChildQuestion } from "./ask-child.ts";
import { diffRows } from "./diff-rows.ts";
import { allowReads, openTables } from "./open-database.ts";

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
} else if (question.kind === "query") print(JSON.stringify(answered(() => ({ rows: rowsOf(question) }))));
else print(JSON.stringify(answered(() => diffRows(question))));
print("end");

/** What goes wrong is an answer too. */
function answered<T>(ask: () => T): T | { error: string } {
  try {
    return ask();
  } catch (error) {
    return { error: String(error).slice(0, 500) };
  }
}

function rowsOf({ file, query }: Extract<ChildQuestion, { kind: "query" }>): unknown[][] {
  const { database } = openTables(file);
  allowReads(database);
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
