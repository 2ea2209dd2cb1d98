import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { hostId } from "../../base/host/owner.ts";
import { fakeNpm } from "../fakes/processes/npm-script.ts";

type Printed = { folder: string; hash: string; version: string; platform: string; code?: string; message: string };

test("a pack is installed once, and used again where there is no npm at all", async (t) => {
  const folder = await temporaryFolder(t);
  const { path, log } = await fakeNpm(folder);
  const first = await ensured(folder, path);
  assert.ok(existsSync(join(first.folder, "pack.json")), first.message);
  assert.equal((await callsIn(log)).length, 2, "the harness and its Node");
  assert.deepEqual(await ensured(folder, "/nowhere"), first);
  assert.equal((await callsIn(log)).length, 2);
});

test("a pack is asked for by exact versions, for the sandbox's platform, and runs no script of a package", async (t) => {
  const folder = await temporaryFolder(t);
  const { path, log } = await fakeNpm(folder);
  await ensured(folder, path);
  for (const { asked, args } of await callsIn(log)) {
    for (const version of Object.values(asked)) assert.match(version, /^\d+\.\d+\.\d+$/);
    for (const flag of ["--ignore-scripts", "--os=linux", "--cpu=x64", "--libc=glibc"]) assert.ok(args.includes(flag), flag);
  }
});

test("a pack can be read by another user, holds what it runs on and not what is never read", async (t) => {
  const folder = await temporaryFolder(t);
  const { path } = await fakeNpm(folder);
  const pack = await ensured(folder, path);
  for (const entry of await readdir(pack.folder, { recursive: true })) {
    const { mode } = await stat(join(pack.folder, entry));
    assert.equal(mode & 0o044, 0o044, entry);
    assert.ok(!entry.endsWith(".d.ts"), entry);
  }
  for (const program of ["bin/pi", "node/bin/node"]) assert.equal((await stat(join(pack.folder, program))).mode & 0o111, 0o111, program);
});

test("two processes that want the same pack install it once", async (t) => {
  const folder = await temporaryFolder(t);
  const { path, log } = await fakeNpm(folder, { slowMs: 300 });
  const [one, other] = await Promise.all([ensured(folder, path), ensured(folder, path)]);
  assert.deepEqual(one, other);
  assert.equal((await callsIn(log)).length, 2);
});

test("npm's own last words are in the error, and nothing is left of the try", async (t) => {
  const folder = await temporaryFolder(t);
  const { path } = await fakeNpm(folder, { fail: "npm error code ENOTFOUND" });
  const error = await ensured(folder, path);
  assert.equal(error.code, "pack_failed");

  assert.match(error.message, /^The pack of Pi could not be installed: npm ended with exit code 1:\nnpm error code ENOTFOUND/);
  assert.deepEqual(await readdir(join(folder, "cache", "packs")), []);
});

test("a package that npm quietly passed over is named", async (t) => {
  const folder = await temporaryFolder(t);
  const { path } = await fakeNpm(folder, { without: "@earendil-works/pi-coding-agent" });
  const error = await ensured(folder, path);
  assert.equal(error.code, "pack_failed");
  assert.match(error.message, /npm was asked for @earendil-works\/pi-coding-agent@0\.87\.1 and did not install it/);
});

test("a machine without npm is told so", async (t) => {
  const folder = await temporaryFolder(t);
  const error = await ensured(folder, "/nowhere");
  assert.equal(error.code, "pack_failed");
  assert.match(error.message, /npm could not be started/);
});

test("an install that is cancelled ends npm, and the next one starts afresh", async (t) => {
  const folder = await temporaryFolder(t);
  const slow = await fakeNpm(folder, { slowMs: 60_000 });
  const cancelled = await ensured(folder, slow.path, { cancelWhenCalled: slow.log });
  assert.equal(cancelled.code, "cancelled");
  const { path } = await fakeNpm(folder);
  assert.equal((await ensured(folder, path)).version, "0.87.1");
});

test("what a killed install left behind, lock and draft, is cleared away", async (t) => {
  const folder = await temporaryFolder(t);
  const { path } = await fakeNpm(folder);
  const { folder: target } = await ensured(folder, path);
  await rm(target, { recursive: true });
  const draft = `${target}.draft-dead`;
  await mkdir(draft);
  await writeFile(`${target}.lock`, `${await hostId()} ${await deadPid()}:1`);
  assert.equal((await ensured(folder, path)).folder, target);
  assert.deepEqual([existsSync(target), existsSync(draft), existsSync(`${target}.lock`)], [true, false, false]);
});

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-pack-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** What a process of its own gets: the pack, or the error as JSON. */
async function ensured(folder: string, path: string, options: { cancelWhenCalled?: string } = {}): Promise<Printed> {
  const { npm_execpath: _, ...inherited } = process.env;
  const env = { ...inherited, PATH: path, ALIDADE_CACHE: join(folder, "cache") };
  const script = join(import.meta.dirname, "../fakes/processes/ensure-pack-process.ts");
  const child = spawn(process.execPath, [script], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  let closed = false;
  const ended = new Promise((resolve) => child.on("close", resolve)).then(() => {
    closed = true;
  });
  if (options.cancelWhenCalled !== undefined) {
    while (!closed && !existsSync(options.cancelWhenCalled)) await new Promise((resolve) => setTimeout(resolve, 20));
    child.kill("SIGTERM");
  }
  await ended;
  return JSON.parse(output) as Printed;
}

async function callsIn(log: string): Promise<{ asked: Record<string, string>; args: string[] }[]> {
  return (await readFile(log, "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** The id of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ["--version"], { stdio: "ignore" });
  await new Promise((resolve) => child.on("close", resolve));
  return child.pid ?? 0;
}
