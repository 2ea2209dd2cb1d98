import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { hostId } from "../../base/host/owner.ts";
import { lockFolder } from "../../rollouts/records/index.ts";

async function emptyFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-lock-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

/** No process has this pid: the kernel gives out none above four million. */
const dead = async () => `${await hostId()} 4999999:1`;

test("of several processes that find the lock of a dead one a single one gets it, and nothing else is left", async (t) => {
  const folder = await emptyFolder(t);
  const processes = Array.from({ length: 4 }, () => fork(join(import.meta.dirname, "../fakes/processes/lock-process.ts"), [folder]));
  t.after(() => processes.map((one) => one.disconnect()));
  const tell = (word: "take" | "free") =>
    Promise.all(
      processes.map(async (one) => {
        const answer = once(one, "message");
        one.send(word);
        return (await answer)[0] as boolean;
      }),
    );
  for (let round = 0; round < 20; round++) {
    await writeFile(join(folder, "lock"), await dead());
    assert.equal((await tell("take")).filter(Boolean).length, 1);
    assert.deepEqual(await readdir(folder), ["lock"]);
    await tell("free");
  }
  assert.deepEqual(await readdir(folder), []);
});

test("a process that died while it removed a dead lock keeps no other out", async (t) => {
  const folder = await emptyFolder(t);
  for (const name of ["lock", "lock.removing"]) {
    await writeFile(join(folder, name), await dead());
    await utimes(join(folder, name), new Date(0), new Date(0));
  }
  await using _lock = await lockFolder(folder);
  assert.deepEqual(await readdir(folder), ["lock"]);
});
