import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withProcessLock } from "../../harnesses/process-lock.ts";

test("a lock that a killed process of the same number left, as in a container started anew, is taken over", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-lock-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "pack.lock");
  const waits = new AbortController();
  const options = { signal: waits.signal, progress: (line: string) => waits.abort(new Error(line)) };
  const mine = await withProcessLock(path, options, () => readFile(path, "utf8"));
  await writeFile(path, mine.replace(/:.*$/, ":1"));
  assert.equal(await withProcessLock(path, options, async () => "taken"), "taken");
});

test("a lock that this very process holds is waited for", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-lock-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "pack.lock");
  const { signal } = new AbortController();
  const order: string[] = [];
  let later: Promise<unknown> = Promise.resolve();
  await withProcessLock(path, { signal }, async () => {
    const told = Promise.withResolvers<string>();
    const second = withProcessLock(path, { signal, progress: told.resolve }, async () => order.push("second"));
    assert.match(await told.promise, /waiting for another process/);
    order.push("first");
    later = second;
  });
  await later;
  assert.deepEqual(order, ["first", "second"]);
});
