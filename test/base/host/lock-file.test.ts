import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { lockFile } from "../../../base/host/lock-file.ts";

async function lockPath(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-lock-"));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "pack.lock");
}

function refuse(holder: string): void {
  throw new Error(`held by ${holder}`);
}

test("a lock that a killed process of the same number left, as in a container started anew, is taken over", async (t) => {
  const path = await lockPath(t);
  const first = await lockFile(path, { onBusy: refuse });
  const mine = await readFile(path, "utf8");
  await first[Symbol.asyncDispose]();
  await writeFile(path, mine.replace(/:.*$/, ":1"));
  await using _lock = await lockFile(path, { onBusy: refuse });
  assert.equal(await readFile(path, "utf8"), mine);
});

test("a lock that this very process holds is waited for, until a signal ends the waiting", async (t) => {
  const path = await lockPath(t);
  const order: string[] = [];
  const told = Promise.withResolvers<string>();
  const first = await lockFile(path, { onBusy: refuse });
  const second = lockFile(path, { onBusy: told.resolve }).then(async (lock) => {
    order.push("second");
    await lock[Symbol.asyncDispose]();
  });
  assert.equal(await told.promise, `process ${process.pid}`);
  const stop = new AbortController();
  await assert.rejects(lockFile(path, { signal: stop.signal, onBusy: () => stop.abort() }), { name: "AbortError" });
  order.push("first");
  await first[Symbol.asyncDispose]();
  await second;
  assert.deepEqual(order, ["first", "second"]);
  assert.deepEqual(await readdir(join(path, "..")), []);
});

test("a lock that cannot be read is refused with its path, and is not waited for", async (t) => {
  const path = await lockPath(t);
  await mkdir(path);
  await assert.rejects(lockFile(path, { onBusy: refuse, signal: AbortSignal.timeout(5_000) }), {
    code: "config_invalid",
    message: /pack\.lock/,
  });
});

test("a lock that went to another process meanwhile stays that one's", async (t) => {
  const path = await lockPath(t);
  const first = await lockFile(path, { onBusy: refuse });
  await writeFile(path, "elsewhere 1:1");
  await first[Symbol.asyncDispose]();
  assert.equal(await readFile(path, "utf8"), "elsewhere 1:1");
});
