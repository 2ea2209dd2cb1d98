import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const bench = join(import.meta.dirname, "../../bench/token-continuity.ts");

// How long anything takes is not asserted: on a shared machine that would be a test of its neighbours.
test("the token-continuity benchmark grows three sessions in both plays, and a continued turn asks the tokenizer once", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [bench, "--quick"]);
  const rows = stdout.split("\n").filter((line) => /^\| (only grows|drops thoughts)/.test(line));
  const told = rows.map((row) => row.split("|").map((cell) => cell.trim()));
  assert.deepEqual(
    told.map(([, play, session, , , , requests]) => [play, session, requests]),
    ["only grows", "drops thoughts"].flatMap((play) => [
      [play, "rendered anew", "0"],
      [play, "continued", "1"],
      [play, "no cache", "0"],
    ]),
  );
  for (const play of ["only grows", "drops thoughts"]) assert.match(stdout, new RegExp(`^${play}: the suffix costs [\\d.]+ ms`, "m"));
});
