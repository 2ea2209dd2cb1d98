import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { extract } from "tar-stream";
import { packContext, readContext } from "../../../../../sandboxes/docker/images/made/build-context.ts";
import { IgnoreFile } from "../../../../../sandboxes/docker/images/made/ignore-file.ts";

async function contextOf(t: TestContext, files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-context-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const [path, content] of Object.entries({ Dockerfile: "FROM scratch\n", ...files })) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content, { mode: 0o644 });
  }
  return folder;
}

const read = (context: string, dockerfile = "Dockerfile") => readContext({ context, dockerfile, args: {} });
const pathsOf = async (context: string, dockerfile?: string) => (await read(context, dockerfile)).entries.map(({ path }) => path);

test("a context's hash is of paths, modes and contents, and not of times or of what is left out", async (t) => {
  const files = { "a.txt": "a", ".dockerignore": "*.log\n" };
  const one = await contextOf(t, { ...files, "x.log": "1" });
  const other = await contextOf(t, { ...files, "y.log": "2" });
  const { sha256 } = await read(one);
  assert.equal((await read(other)).sha256, sha256);
  await chmod(join(other, "a.txt"), 0o755);
  assert.notEqual((await read(other)).sha256, sha256);
  await chmod(join(other, "a.txt"), 0o644);
  await writeFile(join(other, "a.txt"), "b");
  assert.notEqual((await read(other)).sha256, sha256);
});

test("a .dockerignore leaves out what Docker leaves out, and never the Dockerfile or itself", async (t) => {
  const folder = await contextOf(t, {
    ".dockerignore": "# what is made\n*\n!src\n!docs/**/keep.md\nsrc/**/*.tmp\n/src/[ab].txt\n",
    "src/main.c": "",
    "src/deep/er/x.tmp": "",
    "src/a.txt": "",
    "src/c.txt": "",
    "docs/x/keep.md": "",
    "docs/x/drop.md": "",
    "node_modules/x/index.js": "",
  });
  const kept = (await pathsOf(folder)).filter((path) => /\.\w+$|Dockerfile/.test(path));
  assert.deepEqual(kept, [".dockerignore", "Dockerfile", "docs/x/keep.md", "src/c.txt", "src/main.c"]);
  await writeFile(join(folder, "Dockerfile.dockerignore"), "src\ndocs\nnode_modules\n");
  assert.deepEqual(await pathsOf(folder), [".dockerignore", "Dockerfile", "Dockerfile.dockerignore"]);
});

test("a pattern made to keep its reader busy costs no more than another", () => {
  const ignore = new IgnoreFile(`${"*a".repeat(200)}b\n${"**/".repeat(100)}x\n`);
  assert.equal(ignore.leavesOut(Array(60).fill("a".repeat(30)).join("/")), false);
});

test("links out of the context, other files than files, and a missing Dockerfile are refused by field and path", async (t) => {
  const refused = (message: RegExp, param = "environment.build.context") => ({ code: "task_invalid", message, param });
  for (const target of ["/etc/passwd", "../../x", "x/../../.."]) {
    const folder = await contextOf(t, { "src/a": "" });
    await symlink(target, join(folder, "src", "way-out"));
    await assert.rejects(read(folder), refused(/src\/way-out is a link to .*, which leaves the context/));
    await writeFile(join(folder, ".dockerignore"), "**/way-out");
    await read(folder);
  }
  const inside = await contextOf(t, { "src/a": "a" });
  await symlink("src/a", join(inside, "b"));
  assert.ok((await pathsOf(inside)).includes("b"));
  for (const path of ["other", "../Dockerfile", "b"])
    await assert.rejects(read(inside, path), refused(/has no such file/, "environment.build.dockerfile"));
});

test("the tarball holds what was hashed, owned by root, and fails where a file changed since", async (t) => {
  const folder = await contextOf(t, { "a.txt": "aaa", "b/c.txt": "c" });
  await symlink("../a.txt", join(folder, "b", "link"));
  const context = await read(folder);
  const found: unknown[] = [];
  const archive = packContext(context).pipe(extract());
  for await (const entry of archive) {
    const { name, type, uid, linkname } = entry.header;
    found.push([name, type, uid, linkname ?? (await buffer(entry)).toString()]);
    entry.resume();
  }
  assert.deepEqual(found, [
    ["Dockerfile", "file", 0, "FROM scratch\n"],
    ["a.txt", "file", 0, "aaa"],
    ["b/", "directory", 0, ""],
    ["b/c.txt", "file", 0, "c"],
    ["b/link", "symlink", 0, "../a.txt"],
  ]);
  for (const content of ["bbb", "longer than it was", ""]) {
    await writeFile(join(folder, "a.txt"), content);
    await assert.rejects(buffer(packContext(context)), { code: "task_invalid", message: /changed while it was read/ });
  }
});
