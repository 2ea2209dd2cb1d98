import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { AlidadeError } from "../../../base/errors.ts";
import { currentOwner } from "../../../base/host/owner.ts";
import { Limits } from "../../../base/schema/task.ts";
import { samePlace } from "../../../sandboxes/process/same-place.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import type { Sandbox } from "../../../sandboxes/sandbox.ts";

const signal = AbortSignal.timeout(300_000);
const skip = process.platform === "win32" ? "the process sandbox needs Linux or macOS" : false;

async function make(mounts: Record<string, string> = {}): Promise<Sandbox> {
  return localProcess.create(
    { run_id: "process", owner: await currentOwner(), image: null, workdir: "/work", mounts, env: {}, limits: Limits.parse({}) },
    signal,
  );
}

test("nothing is written through a link that stands in the way", { skip }, async () => {
  const outside = await mkdtemp(join(tmpdir(), "outside-"));
  await using sandbox = await make();
  await sandbox.exec(["ln", "-s", outside, "link"]);
  const into = (path: string) => sandbox.writeFiles([{ path, content: Buffer.from("x"), mode: 0o644 }]);
  await assert.rejects(into("link/x"), (error: AlidadeError) => error.code === "request_invalid");
  await assert.rejects(into("link/a/b"), (error: AlidadeError) => error.code === "request_invalid");
  assert.deepEqual(await readdir(outside), []);
  await writeFile(join(outside, "target"), "before");
  await sandbox.exec(["ln", "-s", join(outside, "target"), "file"]);
  await into("file");
  assert.equal(await readFile(join(outside, "target"), "utf8"), "before");
  await rm(outside, { recursive: true });
});

test("mounts are there, are not read as the sandbox's work, and outlive it", { skip }, async () => {
  const dependencies = await mkdtemp(join(tmpdir(), "dependencies-"));
  await writeFile(join(dependencies, "kept"), "kept");
  {
    await using sandbox = await make({ "/work/node_modules": dependencies, "/opt/alidade/pi": dependencies });
    assert.equal((await sandbox.exec(["cat", "node_modules/kept"])).stdout, "kept");
    assert.equal((await sandbox.exec(["cat", sandbox.path("/opt/alidade/pi/kept")])).stdout, "kept");
    assert.deepEqual(await sandbox.readFiles("/work"), []);
  }
  assert.equal(await readFile(join(dependencies, "kept"), "utf8"), "kept");
  await rm(dependencies, { recursive: true });
});

for (const [title, attack] of [
  ["unreadable", "mkdir -p a/b && touch a/b/c && chmod 0 a/b a"],
  ["deeper than a path can say", "p=$(printf 'd/%.0s' {1..1000}); for i in 1 2 3; do mkdir -p $p && cd -P $p; done; echo > file"],
  ["full of names that are no text", "for i in {1..8}; do mkdir d && cd d && mkdir $'a\\377' && touch $'b\\377'; done"],
] as const)
  test(`a folder that was made ${title} inside is removed all the same`, { skip, timeout: 60_000 }, async () => {
    const sandbox = await make();
    const { exit_code, stderr } = await sandbox.exec(["bash", "-c", attack]);
    assert.equal(exit_code, 0, stderr);
    const folder = join(tmpdir(), sandbox.id);
    assert.ok((await readdir(folder)).includes("files"));
    await sandbox[Symbol.asyncDispose]();
    await assert.rejects(readdir(folder), { code: "ENOENT" });
  });

test("what was made unreadable inside is told as such, and not as a fault of the sandbox", { skip }, async (t) => {
  // A user like any other: root reads everything.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  t.after(() => isRoot && process.seteuid?.(0));
  for (const script of ["touch a; chmod 0 a", "mkdir a; chmod 0 a", "touch \"$(printf 'a\\377')\""]) {
    await using sandbox = await make();
    const made = await sandbox.exec(["sh", "-c", script]);
    assert.equal(made.exit_code, 0, made.stderr);
    await assert.rejects(sandbox.readFiles("/work"), { code: "output_unreadable" }, script);
  }
});

test("every sandbox has its folders at the same paths, and sees its own work there", { skip }, async (t) => {
  if ((await samePlace()) === null) return t.skip("this machine lets no user mount");
  await using one = await make();
  await using other = await make();
  assert.notEqual(one.id, other.id);
  for (const inside of ["/work", "/home/agent", "/tmp"]) assert.equal(one.path(inside), other.path(inside));
  const look = (sandbox: Sandbox) =>
    sandbox.exec(["sh", "-c", 'echo "$PWD $(pwd -P) $HOME $TMPDIR"; node -p "process.cwd()"; cat "$HOME/mine"']);
  for (const [sandbox, content] of [
    [one, "one"],
    [other, "other"],
  ] as const)
    await sandbox.writeFiles([{ path: "mine", content: Buffer.from(content), mode: 0o644 }], "/home/agent");
  const [seen, seenByOther] = [await look(one), await look(other)];
  const { path } = (await samePlace()) as { path: string };
  assert.equal(seen.stdout, `${path}/work ${path}/work ${path}/home/agent ${path}/tmp\n${path}/work\none`);
  assert.equal(seenByOther.stdout, seen.stdout.replace(/one$/, "other"));
  await one.exec(["sh", "-c", "echo made > made"], { cwd: one.path("/work") });
  assert.deepEqual(
    (await one.readFiles("/work")).map((file) => file.path),
    ["made"],
  );
  assert.deepEqual(await other.readFiles(other.path("/work")), []);
  assert.deepEqual(await readdir(path), [], "nothing is mounted outside");
});

test("paths inside have a stand-in on the host, and it is its own stand-in", { skip }, async () => {
  await using sandbox = await make();
  const work = sandbox.path("/work");
  assert.ok(work.endsWith("/work"));
  assert.equal(sandbox.path(work), work);
  assert.equal(sandbox.path("/work/../home/agent"), work.replace(/work$/, "home/agent"));
  assert.equal(sandbox.path("/../../etc"), work.replace(/work$/, "etc"));
});
