/** What every store promises; a new one is tested by being listed. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { LogEntry } from "../../base/schema/session-log.ts";
import { DiskStore, MemoryStore, type Store } from "../../proxy/store/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("stores");

let made = 0;
const makers: (() => Store)[] = [() => new MemoryStore(), () => new DiskStore(join(scratch, `${made++}`, "deep"))];
const sealed = (reason: string): LogEntry => ({ type: "sealed", time: 1, reason });
const reasons = async (store: Store, id: string): Promise<unknown[]> =>
  (await store.read(id)).map((entry) => (entry.type === "sealed" ? entry.reason : entry.type));

for (const make of makers) {
  const { name } = make();

  test(`${name}: what was appended is acknowledged and read back in order, session by session`, async () => {
    const store = make();
    assert.deepEqual(await store.list(), []);
    await using one = await store.open("ses1");
    await using two = await store.open("ses2");
    await one.append(sealed("a"), sealed("b"));
    const acknowledged: string[] = [];
    await Promise.all(["c", "d", "e"].map((reason) => one.append(sealed(reason)).then(() => acknowledged.push(reason))));
    assert.deepEqual(acknowledged, ["c", "d", "e"]);
    await two.append(sealed("z"));
    assert.deepEqual(await reasons(store, "ses1"), ["a", "b", "c", "d", "e"]);
    assert.deepEqual(await reasons(store, "ses2"), ["z"]);
    assert.deepEqual((await store.list()).sort(), ["ses1", "ses2"]);
  });

  test(`${name}: a log that is opened again goes on`, async () => {
    const store = make();
    for (const reason of ["a", "b"]) {
      await using log = await store.open("ses1");
      await log.append(sealed(reason));
    }
    assert.deepEqual(await reasons(store, "ses1"), ["a", "b"]);
  });

  test(`${name}: an entry that its own schema refuses is refused by its field, and the log is as it was`, async () => {
    const store = make();
    await using log = await store.open("ses1");
    await log.append(sealed("a"));
    const choice = { type: "tools", time: 1, tools_hash: "h", tools: [{ name: "f", kind: "function", parameters: "constructor" }] };
    const count: LogEntry = { type: "rewarded", time: 1, revision: Number.NaN, reward: null, components: {} };
    await assert.rejects(log.append(sealed("b"), choice as unknown as LogEntry), {
      code: "request_invalid",
      status: 400,
      param: "tools.0.parameters",
    });
    await assert.rejects(log.append(count), { code: "internal", status: 500, param: "revision" });
    await log.append(sealed("c"));
    assert.deepEqual(await reasons(store, "ses1"), ["a", "c"]);
  });

  test(`${name}: an unknown session has no entries, and what was recorded cannot be changed`, async () => {
    const store = make();
    assert.deepEqual(await store.read("ses9"), []);
    const entry = sealed("a");
    await using log = await store.open("ses1");
    await log.append(entry);
    (entry as { reason: string }).reason = "changed";
    const [read] = await store.read("ses1");
    (read as { reason: string }).reason = "changed too";
    assert.deepEqual(await reasons(store, "ses1"), ["a"]);
  });
}

test("disk: a session id that is a path is no session", async () => {
  const store = new DiskStore(join(scratch, "paths"));
  for (const id of ["../x", "a/b", "", "..", "a".repeat(200)]) {
    await assert.rejects(store.open(id), (error: Error & { code?: string }) => error.code === "not_found");
    await assert.rejects(store.read(id), (error: Error & { code?: string }) => error.code === "not_found");
  }
});
