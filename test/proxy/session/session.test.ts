/** Lifetimes: what a seal waits for, what it cuts off, and what is left afterwards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { FaultyStore } from "../../fakes/records/faulty-store.ts";

const hi = [{ role: "user", content: "hi" }];
const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await sleep(2);
};

test("a seal waits until the running call is in the log, however slow the disk is", async () => {
  const store = new FaultyStore();
  store.slow = (entry) => (entry.type === "call_finished" ? sleep(100) : undefined);
  await using at = await proxyAt(() => ({ text: "partial", beforeEnd: new Promise(() => undefined) }), { store });
  const client = await at.open();
  const waiting = client.chat({ messages: hi });
  await client.sampled("partial".length + 1);
  await at.proxy.session(client.sessionId).seal("stop");
  const entries = await client.entries();
  const finished = entries.find((entry) => entry.type === "call_finished");
  assert.equal(finished?.error?.code, "cancelled");
  assert.equal(finished?.sampled_ids?.length, "partial".length + 1, "what was sampled until then is kept");
  assert.equal(entries.at(-1)?.type, "sealed", "nothing comes after the seal");
  assert.ok((await waiting).status >= 400);
  assert.deepEqual(at.unseen, []);
});

test("a seal right after the answer has arrived waits until its delivery is noted", async () => {
  const store = new FaultyStore();
  store.slow = (entry) => (entry.type === "answered" ? sleep(50) : undefined);
  await using at = await proxyAt(() => ({ text: "the last word" }), { store });
  const client = await at.open({ purpose: "train" });
  await client.say(hi);
  await at.proxy.sessions.close(at.proxy.session(client.sessionId), "the rollout is over");
  const { calls } = await { calls: (await at.proxy.trajectory(client.sessionId)).calls };
  assert.equal(calls[0]?.outcome, "delivered");
  assert.deepEqual(at.unseen, []);
});

test("a call that is sealed while its beginning is written is cancelled and not sampled", async () => {
  const store = new FaultyStore();
  const hold = Promise.withResolvers<void>();
  let beginning = false;
  store.slow = (entry) => {
    if (entry.type !== "call_begun") return undefined;
    beginning = true;
    return hold.promise;
  };
  await using at = await proxyAt(() => ({ text: "never" }), { store });
  const client = await at.open();
  const waiting = client.chat({ messages: hi });
  await until(() => beginning);
  const sealing = at.proxy.session(client.sessionId).seal("stop");
  hold.resolve();
  await sealing;
  assert.equal((await waiting).status >= 400, true);
  assert.equal(at.engine.requests.length, 0);
  const finished = (await client.entries()).find((entry) => entry.type === "call_finished");
  assert.equal(finished?.error?.code, "cancelled");
});

test("a second request that joins while the turn is being written down does not write it again", async () => {
  const store = new FaultyStore();
  const hold = Promise.withResolvers<void>();
  let finishing = false;
  store.slow = (entry) => {
    if (entry.type !== "call_finished") return undefined;
    finishing = true;
    return hold.promise;
  };
  await using at = await proxyAt(() => ({ text: "once" }), { store });
  const client = await at.open();
  const gone = new AbortController();
  const first = client.chat({ messages: hi }, gone.signal);
  await until(() => finishing);
  gone.abort();
  await assert.rejects(first);
  const second = client.say(hi);
  await sleep(400);
  hold.resolve();
  assert.equal((await second).content, "once");
  assert.equal((await client.entries()).filter((entry) => entry.type === "call_finished").length, 1);
  assert.equal(at.engine.requests.length, 1);
});

test("a client that does not read does not hold a seal for ever", { timeout: 300_000 }, async () => {
  await using at = await proxyAt(() => ({ text: "x".repeat(100), beforeEnd: new Promise(() => undefined) }));
  const client = await at.open({ relay: "live" });
  const response = await client.chat({ messages: hi, stream: true });
  await at.proxy.session(client.sessionId).seal("stop");
  await response.body?.cancel();
  assert.equal((await client.entries()).at(-1)?.type, "sealed");
});

test("a request that comes after the seal leaves nothing of it in memory", async (t) => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const session = at.proxy.session(client.sessionId);
  await session.seal("done");
  const parse = t.mock.method(session.sent.bodies, "parse");
  assert.equal((await client.chat({ messages: [{ role: "user", content: "x".repeat(50_000) }] })).status, 400);
  assert.equal(parse.mock.callCount(), 0);
});

test("a sealed session holds neither calls nor a file, and still takes rewards, each a revision of its own", async () => {
  const store = new FaultyStore();
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  const client = await at.open();
  await client.say(hi);
  const session = at.proxy.session(client.sessionId);
  await session.seal("over");
  assert.deepEqual([session.calls().length, session.callCount, store.openLogs], [0, 1, 0]);
  const revisions = await Promise.all([session.reward(0, {}), session.reward(1, { tests: 1 }), session.reward(0.5, {})]);
  assert.deepEqual(revisions.sort(), [1, 2, 3]);
  assert.equal(store.openLogs, 0);
  assert.equal((await at.proxy.trajectory(client.sessionId)).reward, 0.5);
  assert.equal((await client.chat({ messages: hi })).status, 400);
  assert.equal(store.openLogs, 0);
});

test("late rewards of a session that is not in memory are a revision each, also at once, and leave no file open", async () => {
  const store = new FaultyStore();
  let left = "";
  {
    await using before = await proxyAt(() => ({ text: "ok" }), { store });
    left = (await before.open()).sessionId;
  }
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  const { sessionId: deleted } = await at.open();
  await at.proxy.sessions.close(at.proxy.session(deleted), "over");
  store.slow = (entry) => (entry.type === "rewarded" ? sleep(20) : undefined);
  for (const id of [left, deleted]) {
    const revisions = await Promise.all([at.proxy.reward(id, 0, {}), sleep(5).then(() => at.proxy.reward(id, 1, {}))]);
    assert.deepEqual([...revisions, await at.proxy.reward(id, 0.5, {})], [1, 2, 3]);
    assert.equal((await at.proxy.trajectory(id)).reward, 0.5);
  }
  assert.equal(store.openLogs, 0);
  await assert.rejects(at.proxy.reward("ses0", 1, {}), /no session is named/);
});

test("a reward that is being written when its session is deleted counts for the next one", async () => {
  const store = new FaultyStore();
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  const session = at.proxy.session((await at.open()).sessionId);
  await session.seal("over");
  store.slow = (entry) => (entry.type === "rewarded" ? sleep(20) : undefined);
  const first = at.proxy.reward(session.id, 0, {});
  await at.proxy.sessions.close(session, "deleted");
  assert.deepEqual([await at.proxy.reward(session.id, 1, {}), await first], [2, 1]);
});

test("closing the proxy writes down what runs, and leaves its sessions open for the next one", async () => {
  const store = new FaultyStore();
  let sessionId = "";
  {
    await using at = await proxyAt(() => ({ text: "cut off", beforeEnd: new Promise(() => undefined) }), { store });
    const client = await at.open();
    sessionId = client.sessionId;
    client.chat({ messages: hi }).catch(() => undefined);
    await until(() => at.engine.requests.length === 1);
  }
  const types = (await store.read(sessionId)).map((entry) => entry.type);
  assert.ok(types.includes("call_finished") && types.includes("answered") && !types.includes("sealed"), types.join(" "));
  assert.equal(store.openLogs, 0);
});

test("a live stream shows what came while it was writing before it waits for more", { timeout: 20_000 }, async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({
    text: "shown at once",
    tool_calls: [{ name: "bash", arguments: "{}" }],
    beforeEnd: hold.promise,
  }));
  const client = await at.open({ relay: "live" });
  const response = await client.chat({ messages: hi, stream: true });
  let seen = "";
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    seen += Buffer.from(chunk).toString();
    if (seen.includes("shown at once")) hold.resolve();
  }
  assert.match(seen, /\[DONE\]/);
});
