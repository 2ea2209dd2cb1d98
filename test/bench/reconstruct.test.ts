import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const bench = join(import.meta.dirname, "../../bench/reconstruct.ts");

// How long anything takes is not asserted: on a shared machine that would be a test of its neighbours.
test("the reconstruct benchmark measures every session and prints its table", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [bench, "--quick"]);
  for (const session of ["append | 6 ", "append | 24", "drift | 6 ", "drift | 24"]) assert.ok(stdout.includes(`| ${session}`), session);
});
