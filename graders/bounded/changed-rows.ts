/** Rows of a SQLite database that differ from what it was. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { temporaryLayers } from "../../base/files/layer.ts";
import { askChild, type MayDiffer } from "./ask-child.ts";
import type { RowDifferences } from "./diff-rows.ts";

/** A database, and what stands in its `-wal` beside it: the part that was not yet moved into it. */
export type DatabaseFiles = { content: Buffer; log: Buffer | null };

const Differing = z.union([z.strictObject({ count: z.number(), rows: z.array(z.string()) }), z.strictObject({ error: z.string() })]);

export async function changedRows(
  before: DatabaseFiles,
  after: DatabaseFiles,
  except: MayDiffer[],
  signal: AbortSignal,
): Promise<RowDifferences | { error: string }> {
  await using kept = await temporaryLayers();
  const put = async ({ content, log }: DatabaseFiles, name: string): Promise<string> => {
    const file = join(kept.folder, name);
    await writeFile(file, content);
    if (log !== null) await writeFile(`${file}-wal`, log);
    return file;
  };
  const files = { before: await put(before, "before.db"), after: await put(after, "after.db") };
  const { answers, whole } = await askChild({ kind: "diff", ...files, except }, signal);
  return whole ? Differing.parse(answers[0]) : { error: "the rows were not compared in time" };
}
