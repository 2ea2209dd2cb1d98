import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../errors.ts";
import { applyPatch } from "../../sandboxes/apply-patch.ts";
import type { SandboxFile } from "../../sandboxes/sandbox.ts";

const file = (path: string, text: string): SandboxFile => ({ path, content: Buffer.from(text), mode: 0o644 });
const tree = [file("a.txt", "1\n2\n3\n"), file("b.txt", "x\n")];
const textOf = (files: SandboxFile[]) => Object.fromEntries(files.map((one) => [one.path, one.content.toString()]));

test("changes, creations, deletions and modes are applied", () => {
  const patch = `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 1
-2
+two
 3
diff --git a/b.txt b/b.txt
deleted file mode 100644
--- a/b.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/run.sh b/run.sh
new file mode 100755
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+echo é
\\ No newline at end of file
`;
  const after = applyPatch(tree, patch);
  assert.deepEqual(textOf(after), { "a.txt": "1\ntwo\n3\n", "run.sh": "echo é" });
  assert.equal(after.find((one) => one.path === "run.sh")?.mode, 0o755);
});

for (const [title, patch, message] of [
  ["context that is not there", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 1\n-zwei\n+two\n", /a\.txt differs at line 2/],
  ["a place that is not there", "--- a/a.txt\n+++ b/a.txt\n@@ -90,1 +90,1 @@\n-1\n+2\n", /no line 90/],
  ["a file that is not there", "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-1\n+2\n", /c\.txt is not in the tree/],
  ["a file that is there already", "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+1\n", /is there already/],
  ["a path that leaves the tree", "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-1\n+2\n", /outside the workdir/],
  ["an absolute path", "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-1\n+2\n", /outside the workdir/],
  ["a cut hunk", "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n", /ends early/],
  ["a rename", "diff --git a/a b/b\nrename from a\nrename to b\n", /a rename/],
  ["no diff at all", "change line two please", /no file header/],
] as const) {
  test(`a patch with ${title} is refused`, () => {
    assert.throws(
      () => applyPatch(tree, patch),
      (error) => error instanceof AlidadeError && error.code === "task_invalid" && message.test(error.message),
    );
  });
}
