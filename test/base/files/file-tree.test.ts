import assert from "node:assert/strict";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { hashTree, insidePath, isInside, matchesAny, overlay, readFolder } from "../../../base/files/file-tree.ts";

test("globs match dot files and folders, and only what they name", () => {
  assert.equal(matchesAny("test/.hidden/x.js", ["test/**"]), true);
  assert.equal(matchesAny("a/.git/config", ["**/.git/**"]), true);
  assert.equal(matchesAny(".git/config", ["**/.git/**"]), true);
  assert.equal(matchesAny("testing/x.js", ["test/**"]), false);
  assert.equal(matchesAny("src/a/b.js", ["src/*.js"]), false);
  assert.equal(matchesAny("a+b(1).js", ["a+b(1).js"]), true);
  assert.equal(matchesAny("package.json", ["package?json"]), true);
});

test("a glob that names a folder names what is inside it", () => {
  for (const path of ["a/.git", ".git", "a/.git/b/c", "x.pyc", "x.pyc/a"])
    assert.equal(isInside(path, ["**/.git", "**/*.pyc"]), true, path);
  for (const path of ["a/.gitignore", "a.git", "x.pyc2/a", "b"]) assert.equal(isInside(path, ["**/.git", "**/*.pyc"]), false, path);
});

test("a path that leaves its folder is none", () => {
  for (const path of ["", "/etc", "a/../b", "..", "./a", "a//b", "a\\b", "a\0b"]) assert.equal(insidePath(path), null);
  assert.equal(insidePath("a/..b/.c"), "a/..b/.c");
});

test("what is laid over a tree wins, also where one has a folder and the other a file", () => {
  const tree = (...paths: string[]) => paths.map((path) => ({ path, content: Buffer.from(path), mode: 0o644 }));
  const paths = (base: string[], over: string[]) => overlay(tree(...base), tree(...over)).map((file) => file.path);
  assert.deepEqual(paths(["a.js/x/y.js", "b"], ["a.js"]), ["a.js", "b"]);
  assert.deepEqual(paths(["test", "testing"], ["test/a/b.js"]), ["test/a/b.js", "testing"]);
  assert.deepEqual(paths(["test/a.js", "test/b.js"], ["test/b.js", "test/c.js"]), ["test/a.js", "test/b.js", "test/c.js"]);
});

test("links are refused and bounds are kept when a folder of the host is read", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-tree-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "a"), "12345");
  assert.deepEqual(
    (await readFolder(folder)).map((file) => file.path),
    ["a"],
  );
  await assert.rejects(readFolder(folder, { max_bytes: 4 }), /more than 4 bytes/);
  await assert.rejects(readFolder(folder, { max_files: 0 }), /more than 0 files/);
  await assert.rejects(readFolder(join(folder, "absent")), /absent is not on this machine: a task's folders are read at the same path/);
  await symlink("/etc/passwd", join(folder, "link"));
  await assert.rejects(readFolder(folder), { code: "task_invalid", message: /links are not followed/ });
});

test("the hash of a tree tells contents and the executable bit, not other modes or order", () => {
  const file = (path: string, mode: number) => ({ path, content: Buffer.from(path), mode });
  assert.equal(hashTree([file("a", 0o644), file("b", 0o600)]), hashTree([file("b", 0o644), file("a", 0o644)]));
  assert.notEqual(hashTree([file("a", 0o644)]), hashTree([file("a", 0o755)]));
});
