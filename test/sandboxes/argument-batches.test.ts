import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { argumentBatches } from "../../sandboxes/argument-batches.ts";

test("paths of all lengths come in their order, in as few commands as the kernel takes", async () => {
  const paths = Array.from({ length: 9_000 }, (_, at) => `/${at}/${"é".repeat(at % 40 === 0 ? 2_000 : at % 60)}`);
  const batches = [...argumentBatches(paths)];
  assert.deepEqual(batches.flat(), paths);
  assert.ok(batches.length <= 4, `${batches.length} commands`);
  for (const batch of batches) {
    const { stdout } = await promisify(execFile)("sh", ["-c", "echo $#", "sh", ...batch]);
    assert.equal(Number(stdout), batch.length);
  }
});

test("a path that is longer than a batch comes alone", () => {
  const long = "x".repeat(2_000_000);
  assert.deepEqual([...argumentBatches(["a", long, "b"])], [["a"], [long], ["b"]]);
  assert.deepEqual([...argumentBatches([])], []);
});
