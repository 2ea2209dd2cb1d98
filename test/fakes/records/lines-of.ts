import { readFile } from "node:fs/promises";

/** The values of a JSONL file that ends with a whole line. */
export async function linesOf<T>(file: string, schema: { parse(value: unknown): T }): Promise<T[]> {
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  return lines.map((line) => schema.parse(JSON.parse(line)));
}
