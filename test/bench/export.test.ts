import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const bench = join(import.meta.dirname, "../../bench/export.ts");

// What is retained is asserted by the full run: a small one measures the compiler.
test("the export benchmark measures a format of each kind and prints its table", async () => {
  const formats = ["flat", "parquet", "trl-grpo"];
  const { stdout } = await promisify(execFile)(process.execPath, [bench, "--quick", ...formats.flatMap((format) => ["--format", format])]);
  for (const format of formats) assert.match(stdout, new RegExp(`^\\| ${format} \\| 64 \\|`, "m"));
});
