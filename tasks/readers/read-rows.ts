/** Rows of a file: one a line (.jsonl), a list (.json), or a table (.parquet). */
import { open } from "node:fs/promises";
import { messageOf } from "../../base/errors.ts";
import { readJson, tryJson } from "../../base/schema/read-json.ts";
import { loadEach } from "../load-each.ts";
import { taskError } from "../task-error.ts";
import type { LoadOptions } from "../task-format.ts";
import { parquetColumns, readParquet } from "./read-parquet.ts";
import { readText } from "./read-text.ts";

/** `where`: the file and the row, for errors. */
export type LocatedRow = { value: unknown; where: string };

export const rowFiles = /\.(?:jsonl|json|parquet)$/;

/** A string of the runtime has no more characters. */
const mostBytes = 512 * 1024 * 1024;
/** Rows of the sets that we know take some kilobytes. */
const headBytes = 1024 * 1024;

/** The first megabyte of a file. */
async function readHead(path: string): Promise<string> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(headBytes) });
  return buffer.toString("utf8", 0, bytesRead);
}

/** Is what stands in a .json file a list? */
export async function holdsList(path: string): Promise<boolean> {
  return /^\s*\[/.test(await readHead(path));
}

/** undefined: there is none, or it is no JSON. A .jsonl file is read to its end only where no row ends within its head. */
export async function firstRow(path: string): Promise<unknown> {
  const lines = path.endsWith(".jsonl") ? (await readHead(path)).split("\n").slice(0, -1) : [];
  for (const line of lines) {
    const value = tryJson(line);
    if (value !== undefined) return value;
  }
  const [first] = await readRows(path, { onLeftOut: () => undefined }).catch(() => []);
  return first?.value;
}

/** The columns of the first row; none where there is no such row. */
export async function columnsOf(path: string): Promise<string[]> {
  if (path.endsWith(".parquet")) return parquetColumns(path).catch(() => []);
  const row = await firstRow(path);
  return row !== null && typeof row === "object" && !Array.isArray(row) ? Object.keys(row) : [];
}

/** A line that is no JSON goes to `onLeftOut`; a file that cannot be read at all throws `task_invalid`. */
export async function readRows(path: string, options: LoadOptions): Promise<LocatedRow[]> {
  if (path.endsWith(".parquet")) return (await readParquet(path)).map((value, at) => ({ value, where: `${path}[${at}]` }));
  const text = await readText(path, { mostBytes, followsLinks: true });
  if (path.endsWith(".jsonl")) return linesOf(text, path, options);
  const rows = parseJson(text, path);
  if (!Array.isArray(rows)) throw taskError(path, "the file", "is no list of rows: write one, or a row a line as .jsonl");
  return rows.map((value: unknown, at) => ({ value, where: `${path}[${at}]` }));
}

function linesOf(text: string, path: string, options: LoadOptions): Promise<LocatedRow[]> {
  const lines = text.split("\n").map((line, index) => ({ line, where: `${path}:${index + 1}` }));
  const filled = lines.filter(({ line }) => line.trim() !== "");
  return loadEach(
    filled,
    ({ where }) => where,
    async ({ line, where }) => ({ value: parseJson(line, where), where }),
    options,
  );
}

function parseJson(text: string, where: string): unknown {
  try {
    return readJson(text);
  } catch (error) {
    throw taskError(where, "the row", `is not JSON: ${messageOf(error)}`);
  }
}
