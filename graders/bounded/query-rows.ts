/** Rows of a query on a SQLite database that a work left. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { temporaryLayers } from "../../base/files/layer.ts";
import { askChild } from "./ask-child.ts";

const Answer = z.union([z.strictObject({ rows: z.array(z.array(z.unknown())) }), z.strictObject({ error: z.string() })]);

/**
 * The rows, values as JSON has them; in words why there are none. `log`: what stands in the file's `-wal` beside it, the
 * part that was not yet moved into it; null where there is none.
 */
export async function queryRows(
  database: Buffer,
  log: Buffer | null,
  query: string,
  signal: AbortSignal,
): Promise<{ rows: unknown[][] } | { error: string }> {
  await using kept = await temporaryLayers();
  const file = join(kept.folder, "copy.db");
  await writeFile(file, database);
  if (log !== null) await writeFile(`${file}-wal`, log);
  const { answers, whole } = await askChild({ kind: "query", file, query }, signal);
  return whole ? Answer.parse(answers[0]) : { error: "the query was not done in time" };
}
