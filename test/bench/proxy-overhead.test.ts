import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { type Report, renderReport } from "../../bench/proxy-overhead/table.ts";

const bench = join(import.meta.dirname, "../../bench/proxy-overhead.ts");

// How long anything takes is not asserted: on a shared machine that would be a test of its neighbours.
test("the proxy-overhead benchmark runs every contestant, and its report says so as JSON and as a table", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [bench, "--quick", "--payload", "a", "--payload", "c", "--json"]);
  const report = JSON.parse(stdout) as Report;
  const ours = report.rows.map(({ contestants }) => contestants.find(({ name }) => name === "alidade"));
  assert.ok(ours.length === 4 && ours.every((one) => (one?.callsRatio?.median ?? 0) > 0));
  const table = renderReport(report);
  for (const contestant of ["direct", "pass-through", "alidade"])
    for (const row of ["a growing", "a one-shot", "c growing", "c one-shot"])
      assert.match(table, new RegExp(`\\| ${row} +\\| ${contestant} +\\|`));
  assert.match(table, /Node \d+\.\d+\.\d+; commit .+; load [\d.]+ before, [\d.]+ after/);
});
