/** Checks the copy of a session's log from which another node goes on. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import type { HarnessProxy } from "../../../proxy/index.ts";
import { DiskStore, MemoryStore } from "../../../proxy/store/index.ts";
import { type Blobs, FolderBlobs, readLogCopy } from "../../../service/blobs/index.ts";
import { LogCopier } from "../../../service/nodes/log-copier.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { pngUrl } from "../../fakes/records/png.ts";

const scratch = scratchFolder("copies");
const name = "set1/roll1";
const part = (number: number) => `${name}/logs/1-${number}.json.zst`;

const { signal } = new AbortController();
const facts = { harness: "h", harness_version: "1", task_hash: "t", resume: null } as RolloutRecord;

function copierTo(blobs: Blobs, { sessions: { store } }: HarnessProxy, notes: string[] = [], attempt = 1): LogCopier {
  return new LogCopier({ isOn: true, blobs, name, attempt, store, note: (text) => notes.push(text) });
}

const ask = (client: Client, content: unknown) => client.say([{ role: "user", content }]);

async function theres(blobs: Blobs, key: string): Promise<void> {
  await until(async () => (await blobs.get(key)) !== null);
}

test("each finished call is copied with its pictures, and the copy reads as the log did then", async () => {
  const blobs = new FolderBlobs(join(scratch, "whole"));
  await using at = await proxyAt(() => ({ text: "ok" }), { store: new DiskStore(join(scratch, "sessions")) });
  const client = await at.open();
  const session = at.proxy.session(client.sessionId);
  const copier = copierTo(blobs, at.proxy);
  await copier.follow(session, facts, signal);
  await ask(client, [{ type: "image_url", image_url: { url: pngUrl(8, 8) } }]);
  await theres(blobs, part(1));
  await ask(client, "and?");
  await theres(blobs, part(2));
  const copy = await readLogCopy(blobs, name, 1);
  const log = await client.entries();
  assert.deepEqual(copy?.entries, log.slice(0, copy?.entries.length));
  assert.equal(copy.entries.filter(({ type }) => type === "call_finished").length, 2);
  assert.equal(copy.head.session_id, client.sessionId);
  const [picture] = copy.pictures;
  assert.deepEqual(
    [copy.pictures.length, picture?.base64],
    [1, at.proxy.sessions.store.media?.read(picture?.sha256 ?? "").toString("base64")],
  );
  const other = new MemoryStore();
  await other.replace(client.sessionId, copy.entries);
  await other.replace(client.sessionId, copy.entries);
  assert.deepEqual(await other.read(client.sessionId), copy.entries, "and goes into another store as it is");
  await copier.close(null);
  assert.notEqual(await blobs.get(part(1)), null, "until the ledger has the result");
  await copier.remove();
  assert.equal(await readLogCopy(blobs, name, 1), null);
});

test("of an attempt that began anew the second session counts, and what the infrastructure broke leaves nothing", async () => {
  const blobs = new FolderBlobs(join(scratch, "second"));
  await using at = await proxyAt(() => ({ text: "ok" }));
  const clients = [await at.open(), await at.open()] as const;
  const copier = copierTo(blobs, at.proxy);
  for (const [index, client] of clients.entries()) {
    await copier.follow(at.proxy.session(client.sessionId), facts, signal);
    await ask(client, "hi");
    await theres(blobs, part(index + 1));
  }
  const copy = await readLogCopy(blobs, name, 1);
  assert.equal(copy?.head.session_id, clients[1].sessionId);
  assert.equal(copy.entries[0]?.type, "opened");
  await copier.close("engine_error");
  assert.equal(await readLogCopy(blobs, name, 1), null);
});

test("a node that breaks before it samples anything leaves the copies of a dead node, and a stale one those of a later attempt", async () => {
  const blobs = new FolderBlobs(join(scratch, "unfit"));
  await using at = await proxyAt((_, index) => (index === 1 ? { refuse: { status: 400, message: "no" } } : { text: "ok" }));
  const client = await at.open();
  const dead = copierTo(blobs, at.proxy);
  await dead.follow(at.proxy.session(client.sessionId), facts, signal);
  await ask(client, "hi");
  await theres(blobs, part(1));
  await copierTo(blobs, at.proxy, [], 2).close("node_unfit");
  assert.notEqual(await readLogCopy(blobs, name, 1), null, "no session was opened");
  const next = copierTo(blobs, at.proxy, [], 2);
  await next.follow(at.proxy.session(client.sessionId), facts, signal);
  await ask(client, "refused").catch(() => undefined);
  await next.close("engine_error");
  assert.notEqual(await readLogCopy(blobs, name, 1), null, "no call of its own was answered");

  const later = copierTo(blobs, at.proxy, [], 3);
  await later.follow(at.proxy.session(client.sessionId), facts, signal);
  await ask(client, "go on");
  await theres(blobs, `${name}/logs/3-1.json.zst`);
  await dead.close("engine_error");
  assert.equal(await readLogCopy(blobs, name, 1), null);
  assert.notEqual(await readLogCopy(blobs, name, 3), null);
  await later.close("engine_error");
  assert.equal(await readLogCopy(blobs, name, 3), null);
});

test("an attempt that is stopped waits for its last part, and nothing is copied of a session after that", async () => {
  const blobs = new FolderBlobs(join(scratch, "stopped"));
  const hold = Promise.withResolvers<void>();
  const slow = Object.assign(Object.create(blobs) as FolderBlobs, {
    put: (key: string, bytes: Uint8Array) => hold.promise.then(() => blobs.put(key, bytes)),
  });
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const copier = copierTo(slow, at.proxy);
  await copier.follow(at.proxy.session(client.sessionId), facts, signal);
  await ask(client, "hi");
  const closed = copier.close("cancelled");
  hold.resolve();
  await closed;
  await ask(client, "more");
  await client.settled();
  const copy = await readLogCopy(blobs, name, 1);
  assert.equal(copy?.entries.filter(({ type }) => type === "call_finished").length, 1);
});

test("a place that refuses a part costs the rollout nothing and is told once; a damaged part is an error that names it", async () => {
  const notes: string[] = [];
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const blobs = new FolderBlobs(join(scratch, "refused"));
  const full = Object.assign(Object.create(blobs) as FolderBlobs, { put: () => Promise.reject(new Error("no space left")) });
  const refused = copierTo(full, at.proxy, notes);
  await refused.follow(at.proxy.session(client.sessionId), facts, signal);
  for (const text of ["a", "b"]) await ask(client, text);
  await until(() => notes.length > 0);
  await refused.close(null);
  assert.equal(notes.length, 1);
  assert.match(notes[0] ?? "", /set1\/roll1: the log of attempt 1 is copied no further \(no space left\)/);

  const copier = copierTo(blobs, at.proxy);
  await copier.follow(at.proxy.session(client.sessionId), facts, signal);
  await ask(client, "c");
  await theres(blobs, part(1));
  await copier.close("cancelled");
  const file = join(blobs.place, part(1));
  const bytes = await readFile(file);
  bytes[bytes.length - 6] = (bytes[bytes.length - 6] ?? 0) ^ 1;
  await writeFile(file, bytes);
  await assert.rejects(readLogCopy(blobs, name, 1), {
    code: "store_error",
    message: /the copy set1\/roll1\/logs\/1-1\.json\.zst .* damaged/,
  });
});

test("following a session ends with its attempt, even if an earlier part never arrives", async () => {
  const stop = new AbortController();
  const stuck = Object.assign(Object.create(new FolderBlobs(join(scratch, "stuck"))) as FolderBlobs, {
    put: () => {
      stop.abort(new Error("the node was stopped"));
      return new Promise<void>(() => undefined);
    },
  });
  await using at = await proxyAt(() => ({ text: "ok" }));
  const clients = [await at.open(), await at.open()] as const;
  const copier = copierTo(stuck, at.proxy);
  await copier.follow(at.proxy.session(clients[0].sessionId), facts, stop.signal);
  await ask(clients[0], "hi");
  await assert.rejects(copier.follow(at.proxy.session(clients[1].sessionId), facts, stop.signal), /the node was stopped/);
});
