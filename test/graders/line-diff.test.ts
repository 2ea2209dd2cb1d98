import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyPatch } from "../../files/apply-patch.ts";
import type { TreeFile } from "../../files/file-tree.ts";
import { diffLines } from "../../graders/line-diff.ts";
import { diffWork } from "../../graders/work.ts";

const file = (path: string, text: string | Buffer, mode = 0o644): TreeFile => ({ path, content: Buffer.from(text), mode });
const text = fc.array(fc.constantFrom("a\n", "b\n", "c\n", "\n", "é\n", "end"), { maxLength: 30 }).map((lines) => lines.join(""));

test("a diff applied to its old side gives its new side", () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      const { patch } = diffWork([file("x", before)], [file("x", after)]);
      assert.equal(applyPatch([file("x", before)], patch)[0]?.content.toString(), after);
    }),
    { numRuns: 300 },
  );
});

test("equal texts have no hunks and a change has as few lines as it can", () => {
  assert.equal(diffLines("a\nb\n", "a\nb\n"), "");
  assert.equal(
    diffLines("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
    "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
  );
});

test("work is compared by content and executable bit, with added, deleted and binary files", () => {
  const base = [file("keep", "a\n"), file("gone", "b\n"), file("run", "x\n"), file("bin", Buffer.from([0, 1]))];
  const work = [file("keep", "a\n", 0o600), file("run", "x\n", 0o755), file("bin", Buffer.from([0, 2])), file("new", "no end")];
  const diff = diffWork(base, work);
  assert.deepEqual([diff.added, diff.deleted, diff.modified, diff.no_change], [["new"], ["gone"], ["bin", "run"], false]);
  assert.match(diff.patch, /old mode 100644\nnew mode 100755/);
  assert.match(diff.patch, /Binary files differ/);
  assert.match(diff.patch, /\+no end\n\\ No newline at end of file/);
  assert.equal(diffWork(base, base).no_change, true);
});

test("a huge rewrite is bounded", () => {
  const lines = (seed: number) => Array.from({ length: 20_000 }, (_, index) => `${(index * seed) % 10_007}\n`).join("");
  const diff = diffWork([file("x", lines(7))], [file("x", lines(11))]);
  assert.ok(diff.patch.length <= 200_000);
  assert.equal(diff.no_change, false);
});
