/** What happens to calls while there is no space to record them, on a store that says so. A real full disk: test/e2e. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { rebuildSession } from "../../../proxy/session/rebuild.ts";
import { until } from "../../fakes/machine/until.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { FaultyStore } from "../../fakes/records/faulty-store.ts";

const hi = [{ role: "user", content: "hi" }];
const bodies = {
  "/v1/chat/completions": { model: "m", messages: hi },
  "/v1/responses": { model: "m", input: "hi" },
  "/v1/messages": { model: "m", max_tokens: 100, messages: hi },
};

test("a call that cannot be written down is answered 503 in its dialect's shape, is never sampled, and SDKs may retry it", async () => {
  const store = new FaultyStore();
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  const client = await at.open({ purpose: "train" });
  store.full = () => true;
  for (const [path, body] of Object.entries(bodies))
    for (const stream of [true, false]) {
      const response = await client.post(path, { ...body, stream });
      const { error } = (await response.json()) as { error: { type: string; code?: string; message: string } };
      assert.equal(response.status, 503, path);
      assert.equal(response.headers.get("x-should-retry"), null, "nothing forbids the retry");
      assert.equal(error.type, path === "/v1/messages" ? "overloaded_error" : "server_error");
      assert.match(error.message, /no space left/);
    }
  assert.equal(at.engine.requests.length, 0);
  store.full = () => false;
  assert.equal((await client.say(hi)).content, "ok");
  const { calls } = await client.trajectory();
  assert.deepEqual([calls.length, calls[0]?.outcome], [1, "delivered"]);
  assert.deepEqual(at.unseen, []);
});

test("a call that could not be written down is named by none that began meanwhile: the session stays readable", async () => {
  const store = new FaultyStore();
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  const client = await at.open({ purpose: "train" });
  const session = at.proxy.session(client.sessionId);
  const disk = Promise.withResolvers<void>();
  store.slow = (entry) => (entry.type === "call_begun" ? disk.promise : undefined);
  store.full = (entry) => entry.type === "call_begun" && entry.ordinal === 0;
  const first = client.chat({ messages: hi });
  await until(() => session.calls().length === 1);
  const second = client.say([...hi, { role: "user", content: "and?" }]);
  await until(() => session.calls().length === 2);
  disk.resolve();
  assert.equal((await first).status, 503);
  assert.equal((await second).content, "ok");
  const trajectory = await client.trajectory();
  assert.deepEqual(
    trajectory.calls.map((call) => [call.ordinal, call.input.length]),
    [[1, 2]],
  );
  assert.equal((await rebuildSession(store, client.sessionId))?.calls().length, 1);
});

test("a turn that was sampled and could not be written is written and answered when its client retries, not sampled again", async () => {
  for (const stream of [false, true]) {
    const store = new FaultyStore();
    await using at = await proxyAt(() => ({ text: "only once" }), { store });
    const client = await at.open({ purpose: "train", budgets: { max_turns: 1 } });
    store.full = (entry) => entry.type === "call_finished" || entry.type === "answered";
    const failed = await client.chat({ messages: hi, stream });
    assert.equal(failed.status, stream ? 200 : 503);
    assert.match(await failed.text(), /store_full/);
    assert.equal((await client.chat({ messages: hi })).status, 503, "still full");
    store.full = () => false;
    assert.equal((await client.say(hi)).content, "only once");
    assert.equal(at.engine.requests.length, 1, "sampled once");
    const entries = await client.entries();
    assert.equal(entries.filter((entry) => entry.type === "call_finished").length, 1);
    assert.equal(entries.filter((entry) => entry.type === "tried").length, 1);
    const trajectory = await client.trajectory();
    assert.deepEqual(
      trajectory.calls.map((call) => call.outcome),
      ["delivered"],
    );
    assert.equal(trajectory.fidelity.trainable_tokens, "only once".length + 1);
    assert.deepEqual(at.unseen, []);
  }
});

test("an answer that was delivered counts as delivered, though the disk was full when that should have been noted", async () => {
  const store = new FaultyStore();
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  const client = await at.open({ purpose: "train" });
  store.full = (entry) => entry.type === "answered";
  assert.equal((await client.say(hi)).content, "ok");
  assert.ok(!(await client.entries()).some((entry) => entry.type === "answered"));
  store.full = () => false;
  await at.proxy.session(client.sessionId).seal("over");
  const { calls, fidelity } = await client.trajectory();
  assert.equal(calls[0]?.outcome, "delivered");
  assert.equal(fidelity.trainable_tokens, 3);
  assert.deepEqual(at.unseen, []);
});

test("a seal on a full disk is refused, keeps the session shut, and writes the unsaved turn when it is sealed again", async () => {
  const store = new FaultyStore();
  await using at = await proxyAt(() => ({ text: "kept" }), { store });
  const client = await at.open({ purpose: "train" });
  store.full = (entry) => entry.type !== "call_begun";
  assert.equal((await client.chat({ messages: hi })).status, 503);
  const session = at.proxy.session(client.sessionId);
  const isFull = (error: Error & { code?: string }): boolean => error.code === "store_full";
  await assert.rejects(session.seal("over"), isFull);
  assert.equal((await client.chat({ messages: hi })).status, 400, "sealed all the same");
  await assert.rejects(at.proxy.sessions.close(session, "again"), isFull);
  store.full = () => false;
  await session.seal("once more");
  const entries = await client.entries();
  assert.equal(entries.filter((entry) => entry.type === "call_finished").length, 1);
  const sealed = entries.filter((entry) => entry.type === "sealed");
  assert.deepEqual(
    sealed.map((entry) => entry.reason),
    ["over"],
  );
});

test("a session that cannot be opened on a full disk leaves no open log behind, and the next one can", async () => {
  const store = new FaultyStore();
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  store.full = () => true;
  await assert.rejects(at.open(), (error: Error & { code?: string }) => error.code === "store_full");
  assert.equal(store.openLogs, 0);
  store.full = () => false;
  assert.equal((await (await at.open()).say(hi)).content, "ok");
});
