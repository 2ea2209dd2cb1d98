/** Rows of a file: one a line (.jsonl), a list (.json), or a table (.parquet). */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { messageOf } from "../errors.ts";
import { readJson } from "../schema/read-json.ts";
import { loadEach } from "./load-each.ts";
import { readParquet } from "./read-parquet.ts";
import { parseTask, taskError } from "./task-error.ts";
import type { LoadOptions } from "./task-format.ts";

/** `where`: the file and the row, for errors. */
export type LocatedRow = { value: unknown; where: string };

export const rowFiles = /\.(?:jsonl|json|parquet)$/;

/** A line that is no JSON goes to `onLeftOut`; a file that cannot be read at all throws `task_invalid`. */
export async function readRows(path: string, options: LoadOptions): Promise<LocatedRow[]> {
  if (path.endsWith(".parquet")) return (await readParquet(path)).map((value, at) => ({ value, where: `${path}[${at}]` }));
  const text = await readFile(path, "utf8");
  if (path.endsWith(".jsonl")) return linesOf(text, path, options);
  return parseTask(z.array(z.unknown()), parseJson(text, path), path).map((value, at) => ({ value, where: `${path}[${at}]` }));
}

function linesOf(text: string, path: string, options: LoadOptions): Promise<LocatedRow[]> {
  const lines = text.split("\n").map((line, index) => ({ line, where: `${path}:${index + 1}` }));
  const filled = lines.filter(({ line }) => line.trim() !== "");
  return loadEach(filled, async ({ line, where }) => ({ value: parseJson(line, where), where }), options);
}

function parseJson(text: string, where: string): unknown {
  try {
    return readJson(text);
  } catch (error) {
    throw taskError(where, "the row", `is not JSON: ${messageOf(error)}`);
  }
}
