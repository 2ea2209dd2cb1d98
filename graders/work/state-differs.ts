/** Compares what two rollouts left in a task's services: databases row by row, workbooks cell by cell, other files by their bytes. */

import type { MayDiffer } from "../bounded/ask-child.ts";
import { changedRows, type DatabaseFiles } from "../bounded/changed-rows.ts";
import { isWorkbook } from "../bounded/read-workbook.ts";
import type { ServiceReadings } from "../grader.ts";
import { contentsOf, type FileContent } from "./layer-contents.ts";

/** Files beside a SQLite database: its log counts as part of it, the others hold no rows. */
const besideDatabase = /-(?:wal|shm|journal)$/;
const databaseStart = Buffer.from("SQLite format 3\0");

/** What may differ of a database, by its path in a reading (`statePath`). */
export type Exceptions = ReadonlyMap<string, MayDiffer[]>;

export async function stateDiffers(
  one: ServiceReadings,
  other: ServiceReadings,
  exceptions: Exceptions,
  signal: AbortSignal,
): Promise<boolean> {
  const paths = new Set(
    [one, other].flatMap(({ after }) => after.changes.map(({ path }) => path)).filter((path) => path.startsWith("/state/")),
  );
  const [first, second] = [await contentsOf(one.after, paths), await contentsOf(other.after, paths)];
  for (const path of paths) {
    if (besideDatabase.test(path) && paths.has(path.replace(besideDatabase, ""))) continue;
    if (await fileDiffers(databaseAt(first, path), databaseAt(second, path), exceptions.get(path) ?? [], signal)) return true;
  }
  return false;
}

type ContentWithLog = { content: FileContent; log: FileContent };

function databaseAt(contents: Map<string, FileContent>, path: string): ContentWithLog {
  return { content: contents.get(path) ?? null, log: contents.get(`${path}-wal`) ?? null };
}

async function fileDiffers(one: ContentWithLog, other: ContentWithLog, except: MayDiffer[], signal: AbortSignal): Promise<boolean> {
  const [a, b] = [withTables(one), withTables(other)];
  if (a === null || b === null) {
    if (Buffer.isBuffer(one.content) && Buffer.isBuffer(other.content)) return !one.content.equals(other.content);
    return one.content !== other.content;
  }
  const found = await changedRows(a, b, except, signal);
  return "error" in found || found.count > 0;
}

/** null: it has no tables. */
function withTables({ content, log }: ContentWithLog): DatabaseFiles | null {
  if (!Buffer.isBuffer(content)) return null;
  if (!content.subarray(0, databaseStart.length).equals(databaseStart) && !isWorkbook(content)) return null;
  return { content, log: Buffer.isBuffer(log) ? log : null };
}
