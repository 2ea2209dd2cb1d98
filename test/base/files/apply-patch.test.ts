import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { AlidadeError } from "../../../base/errors.ts";
import { applyPatch } from "../../../base/files/apply-patch.ts";
import type { TreeFile } from "../../../base/files/file-tree.ts";
import { readFolder } from "../../../base/files/file-tree.ts";
import { need } from "../../needs.ts";

const file = (path: string, text: string): TreeFile => ({ path, content: Buffer.from(text), mode: 0o644 });
const tree = [file("a.txt", "1\n2\n3\n"), file("b.txt", "x\n")];
const textOf = (files: TreeFile[]) => Object.fromEntries(files.map((one) => [one.path, one.content.toString()]));

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

test("a file of many lines is changed at its end", () => {
  const text = "x\n".repeat(300_000);
  const patch = "--- a/long\n+++ b/long\n@@ -300000 +300000 @@\n-x\n+y\n";
  assert.equal(
    applyPatch([file("long", text)], patch)[0]
      ?.content.toString()
      .slice(-6),
    "x\nx\ny\n",
  );
});

for (const [title, patch, message] of [
  ["context that is not there", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 1\n-zwei\n+two\n", /a\.txt differs at line 2/],
  ["a place that is not there", "--- a/a.txt\n+++ b/a.txt\n@@ -90,1 +90,1 @@\n-1\n+2\n", /no line 90/],
  ["a file that is not there", "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-1\n+2\n", /c\.txt is not in the tree/],
  ["a file that is there already", "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+1\n", /is there already/],
  ["a path that leaves the tree", "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-1\n+2\n", /outside the workdir/],
  ["an absolute path", "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-1\n+2\n", /outside the workdir/],
  ["a cut hunk", "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n", /ends early/],
  ["a rename of a file that is not there", "diff --git a/a b/b\nrename from a\nrename to b\n", /a is not in the tree/],
  ["a rename over a file", "diff --git a/a.txt b/b.txt\nrename from a.txt\nrename to b.txt\n", /b\.txt is there already/],
  ["a rename out of the tree", "diff --git a/a.txt b/x\nrename from a.txt\nrename to ../x\n", /outside the workdir: \.\.\/x/],
  ["a new empty file out of the tree", "diff --git a/../x b/../x\nnew file mode 100644\n", /outside the workdir: \.\.\/x/],
  ["a quoted path that leaves the tree", '--- "a/\\056./x"\n+++ "b/\\056./x"\n@@ -1 +1 @@\n-1\n+2\n', /outside the workdir: \.\.\/x/],
  ["a path with a backslash", '--- /dev/null\n+++ "b/c\\\\d"\n@@ -0,0 +1 @@\n+1\n', /outside the workdir: c\\d/],
  ["a path that is no UTF-8", '--- /dev/null\n+++ "b/\\351"\n@@ -0,0 +1 @@\n+1\n', /not UTF-8/],
  ["a link", "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.txt\n", /a link or a submodule/],
  ["a deletion of a file by its mode alone", "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\n", /more lines than the patch removes/],
  ["a header without a change", "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n", /a\.txt has no change below it/],
  ["a binary change", "diff --git a/a b/a\nindex 1..2 100644\nBinary files a/a and b/a differ\n", /line 3 is a binary change/],
  ["a binary literal", "diff --git a/a b/a\nnew file mode 100644\nindex 0..2\nGIT binary patch\nliteral 1\n", /line 4 is a binary change/],
  ["other line ends than the file's", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\r\n+one\r\n", /a\.txt differs at line 1/],
  [
    "a hunk cut before a line that is not blank",
    "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-1\n+one",
    /a\.txt has no blank line 2, where the patch ends early/,
  ],
  [
    "a hunk cut in the middle",
    `--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-x\n+y\n`,
    /ends early/,
  ],
  ["no diff at all", "change line two please", /no file header/],
] as const) {
  test(`a patch with ${title} is refused`, () => {
    assert.throws(
      () => applyPatch(tree, patch),
      (error) => error instanceof AlidadeError && error.code === "task_invalid" && message.test(error.message),
    );
  });
}

/** A tester has settings of their own, and none of them may count. */
const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };

async function inFolder<T>(files: TreeFile[], use: (folder: string) => T): Promise<Awaited<T>> {
  const folder = mkdtempSync(join(tmpdir(), "alidade-patch-"));
  try {
    put(folder, files);
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function put(folder: string, files: TreeFile[]): void {
  for (const { path, content, mode } of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content, { mode });
  }
}

/** What git makes of the patch; null where it refuses. */
function gitApply(files: TreeFile[], patch: string): Promise<TreeFile[] | null> {
  return inFolder(files, (cwd) => (spawnSync("git", ["apply"], { cwd, env, input: patch }).status === 0 ? readFolder(cwd) : null));
}

/** The patch that git writes for a change. */
function gitDiff(before: TreeFile[], after: TreeFile[], flags: string[], quotePath: boolean): Promise<string> {
  return inFolder([], (folder) => {
    const git = (...words: string[]) => execFileSync("git", words, { cwd: folder, env, encoding: "utf8" });
    git("init", "-q");
    const treeOf = (name: string, files: TreeFile[]) => {
      mkdirSync(join(folder, name));
      put(join(folder, name), files);
      const words = ["--git-dir", join(folder, ".git"), "--work-tree", join(folder, name)];
      git(...words, "add", "-A");
      return git(...words, "write-tree").trim();
    };
    const [old, fresh] = [treeOf("before", before), treeOf("after", after)];
    return git("-c", `core.quotePath=${quotePath}`, "diff-tree", "-p", ...flags, old, fresh);
  });
}

const lines = [
  "1\n",
  "2\n",
  "three\n",
  "3  \n",
  "\n",
  "  \n",
  "é\n",
  "crlf\r\n",
  "- x\n",
  "-- a/a.txt\n",
  "++ b/a.txt\n",
  "@@ -1 +1 @@\n",
  "\\ No\n",
];
const names = ["a.txt", "b c.txt", "a/b", "b/a/__init__.py", "b", "é.py", 'q"\t', "run.sh", "a/café/x y"];

/** Files that can stand beside each other: none is where another one has a folder. */
function someTree(line: fc.Arbitrary<string>): fc.Arbitrary<TreeFile[]> {
  const content = fc.tuple(fc.array(line, { maxLength: 12 }), fc.constantFrom("", "", "end")).map(([text, end]) => text.join("") + end);
  const one = fc.tuple(fc.constantFrom(...names), content, fc.constantFrom(0o644, 0o644, 0o755));
  return fc.uniqueArray(one, { maxLength: 6, selector: ([path]) => path }).map((files) =>
    files
      .filter(([path]) => !files.some(([other]) => other.startsWith(`${path}/`)))
      .map(([path, text, mode]) => ({ ...file(path, text), mode }))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
  );
}

/** The second one takes some files of the first over, under their own paths or others'. */
function twoTrees(line: fc.Arbitrary<string>): fc.Arbitrary<[TreeFile[], TreeFile[]]> {
  return fc
    .tuple(someTree(line), someTree(line), fc.array(fc.nat(5), { maxLength: 6 }))
    .map(([before, after, taken]) => [
      before,
      after.map((one, index) => ({ ...one, content: before[taken[index] ?? 6]?.content ?? one.content })),
    ]);
}

const seen = (files: TreeFile[] | null) => files?.map(({ path, content, mode }) => [path, content.toString(), mode]);

test("what git writes is applied as git applies it", async (t) => {
  if (!(await need(t, "git"))) return;
  const flags = fc.subarray(["-M", "-C", "--find-copies-harder", "-B", "-U1", "--full-index"]);
  await fc.assert(
    fc.asyncProperty(twoTrees(fc.constantFrom(...lines)), flags, fc.boolean(), async ([before, after], options, quotePath) => {
      const patch = await gitDiff(before, after, options, quotePath);
      assert.deepEqual(seen(applyPatch(before, patch)), seen(after), patch);
      if (patch !== "") assert.deepEqual(seen(await gitApply(before, patch)), seen(after), patch);
    }),
    { numRuns: 30 },
  );
});

test("a patch whose end was stripped is applied as the whole one", async (t) => {
  if (!(await need(t, "git"))) return;
  const line = fc.constantFrom(...lines.filter((text) => text === "\n" || text.trimEnd() === text.slice(0, -1)));
  await fc.assert(
    fc.asyncProperty(twoTrees(line), fc.constantFrom<string[]>([], ["-M"]), async ([before, after], options) => {
      const patch = await gitDiff(before, after, options, true);
      assert.deepEqual(seen(applyPatch(before, patch.trimEnd())), seen(after), patch);
    }),
    { numRuns: 30 },
  );
});

const base = [
  file("a.txt", "1\n2\n3\n"),
  file("crlf.txt", "1\r\n2\r\n"),
  file("empty", ""),
  file("end", "1\n2"),
  file("gaps", "1\n\n  \n"),
  file("é b.txt", "x\n"),
];
const edit = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n-1\n+one\n 2\n 3\n";

for (const [title, patch, whole = patch] of [
  [
    "a new empty file beside another change",
    `${edit}diff --git a/p/__init__.py b/p/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n`,
  ],
  ["a deleted empty file beside another change", `diff --git a/empty b/empty\ndeleted file mode 100644\nindex e69de29..0000000\n${edit}`],
  ["a change of mode alone", "diff --git a/é b.txt b/é b.txt\nold mode 100644\nnew mode 100755\n"],
  ["a change of mode with a hunk", edit.replace("\n", "\nold mode 100644\nnew mode 100755\n")],
  ["a rename of the same content", "diff --git a/a.txt b/b b.txt\nsimilarity index 100%\nrename from a.txt\nrename to b b.txt\n"],
  ["a copy with a change", edit.replace("\n", "\nsimilarity index 70%\ncopy from a.txt\ncopy to c.txt\n").replaceAll("b/a.txt", "b/c.txt")],
  [
    "paths that change places",
    "diff --git a/a.txt b/end\nsimilarity index 100%\nrename from a.txt\nrename to end\ndiff --git a/end b/a.txt\nsimilarity index 100%\nrename from end\nrename to a.txt\n",
  ],
  ["a path that is quoted", '--- "a/\\303\\251 b.txt"\t\n+++ "b/\\303\\251 b.txt"\t\n@@ -1 +1 @@\n-x\n+y\n'],
  ["a path that is not ASCII", "--- a/é b.txt\t\n+++ b/é b.txt\t\n@@ -1 +1 @@\n-x\n+y\n"],
  ["quotes and a tab in a path", 'diff --git "a/\\"\\t\\"" "b/\\"\\t\\""\nnew file mode 100644\n'],
  ["other line ends than the file's", "--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1 +1 @@\n-1\n+one\n"],
  ["an added last line, stripped", "--- a/a.txt\n+++ b/a.txt\n@@ -3 +3,2 @@\n 3\n+4", "--- a/a.txt\n+++ b/a.txt\n@@ -3 +3,2 @@\n 3\n+4\n"],
  ["context at its end, stripped", edit.trimEnd(), edit],
  ["a file without a last line end", "--- a/end\n+++ b/end\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n\\ No newline at end of file\n"],
  [
    "a file without a last line end, stripped",
    "--- a/end\n+++ b/end\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n\\ No newline at end of file",
    "--- a/end\n+++ b/end\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n\\ No newline at end of file\n",
  ],
  [
    "blank context at its end, stripped",
    "--- a/gaps\n+++ b/gaps\n@@ -1,3 +1,3 @@\n-1\n+one",
    "--- a/gaps\n+++ b/gaps\n@@ -1,3 +1,3 @@\n-1\n+one\n \n   \n",
  ],
] as const) {
  test(`as git does it: ${title}`, async (t) => {
    if (!(await need(t, "git"))) return;
    const wanted = await gitApply(base, whole);
    if (wanted === null) assert.throws(() => applyPatch(base, patch), { name: "AlidadeError", code: "task_invalid" });
    else {
      assert.notDeepEqual(seen(wanted), seen(base));
      assert.deepEqual(seen(applyPatch(base, patch)), seen(wanted));
    }
  });
}
