import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DiskStore, readJsonLines } from "../../store/index.ts";
import { LogBuilder, user } from "../fakes/log-builder.ts";

test("a stranger's file beside the logs is no session, and every session that is listed can be read", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-disk-"));
  t.after(() => rm(folder, { recursive: true }));
  const store = new DiskStore(folder);
  const log = new LogBuilder();
  log.call({ messages: [user("hi")] });
  {
    await using own = await store.open("ses1");
    await own.append(...log.entries);
  }
  for (const stranger of ["ses1 (copy).jsonl", ".jsonl", "notes.txt", "ses1.jsonl.bak"]) await writeFile(join(folder, stranger), "{}\n");
  assert.deepEqual(await store.list(), ["ses1"]);
  for (const id of await store.list()) assert.equal((await store.read(id)).length, log.entries.length);
});

test("a file that cannot be read is named, with what is wrong about it", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-disk-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "trajectories.jsonl");
  await mkdir(path);
  const message = `cannot read ${path}: EISDIR: illegal operation on a directory, read`;
  await assert.rejects(Array.fromAsync(readJsonLines(path, String)), { code: "store_error", message });
});
