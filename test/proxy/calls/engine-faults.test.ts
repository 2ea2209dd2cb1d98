import assert from "node:assert/strict";
import { test } from "node:test";
import { dialects } from "../../../proxy/dialects/registry.ts";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { dialectRequest } from "../../fakes/proxies/dialect-requests.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];

test("an engine that breaks off mid-stream is an error with its partial ids kept, and nothing of it is trained", async () => {
  await using at = await proxyAt((_, index) => (index === 0 ? { text: "half a sentence", cutAfter: 4 } : { text: "fine" }));
  const client = await at.open({ purpose: "train" });
  const response = await client.chat({ messages: hi, stream: true });
  assert.match(await response.text(), /engine_error|"error"/);
  const finished = (await client.entries()).find((entry) => entry.type === "call_finished");
  assert.equal(finished?.sampled_ids?.length, 4);
  assert.equal(finished?.error?.code, "engine_error");
  await client.say(hi);
  const { calls, nodes, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.outcome),
    ["failed", "delivered"],
  );
  assert.equal(fidelity.excluded.failed, 4);
  assert.ok(nodes.every((node) => node.call_id !== calls[0]!.call_id || !node.trainable));
  assert.deepEqual(at.unseen, []);
});

test("an engine's error keeps its status when nothing was sent yet", async () => {
  const errors = [
    [{ status: 500, message: "boom" }, 502],
    [{ status: 400, message: "This model's maximum context length is 10 tokens" }, 400],
    [{ status: 400, message: "bad grammar" }, 400],
  ] as const;
  for (const [refuse, status] of errors)
    for (const stream of [true, false]) {
      await using at = await proxyAt(() => ({ refuse }));
      const client = await at.open();
      const response = await client.chat({ messages: hi, stream });
      assert.equal(response.status, status, `${refuse.message} stream=${stream}`);
      assert.match(await response.text(), new RegExp(refuse.message));
    }
});

test("a full engine is tried again at most twice before the first byte, and each try is on the record", async () => {
  await using at = await proxyAt((_, index) => (index < 2 ? { refuse: { status: 503, message: "busy" } } : { text: "ok" }));
  const client = await at.open();
  assert.equal((await client.say(hi)).content, "ok");
  const tries = (await client.entries()).filter((entry) => entry.type === "tried");
  assert.deepEqual(
    tries.map((one) => [one.try, one.status]),
    [
      [1, 503],
      [2, 503],
      [3, 200],
    ],
  );
  assert.equal((await client.trajectory()).fidelity.resampled, 0);
});

test("a connection that closes without a byte may have cost a sample: the call fails, and what it sampled is unknown", async () => {
  await using at = await proxyAt((_, index) => (index === 1 ? { isSilent: true } : { text: "ok" }));
  const client = await at.open({ purpose: "train" });
  await client.say(hi);
  assert.equal((await client.chat({ messages: [{ role: "user", content: "again" }] })).status, 502);
  assert.equal(at.engine.requests.length, 2, "it is not asked again");
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ outcome, uncounted, tries }) => [outcome, uncounted, tries[0]?.status, tries[0]?.may_have_sampled]),
    [
      ["delivered", null, 200, undefined],
      ["failed", "broken_off", null, true],
    ],
  );
  assert.deepEqual([fidelity.uncounted, fidelity.resampled], [{ broken_off: 1 }, 0]);
});

test("with resample_lost a lost answer is asked for again, and counted as resampled", async () => {
  const script = (index: number): ScriptedReply => (index === 1 ? { isSilent: true } : { text: "ok" });
  await using at = await enginesAt((_, request, index) => (request.probe ? {} : script(index)), { a: { resampleLost: true } });
  const client = await at.open({ purpose: "train" });
  await client.say(hi);
  assert.equal((await client.say([{ role: "user", content: "again" }])).content, "ok");
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ outcome, uncounted }) => [outcome, uncounted]),
    [
      ["delivered", null],
      ["delivered", "resampled"],
    ],
  );
  assert.deepEqual(
    calls[1]?.tries.map((one) => [one.try, one.status, one.may_have_sampled]),
    [
      [1, null, true],
      [2, 200, undefined],
    ],
  );
  assert.deepEqual([fidelity.uncounted, fidelity.resampled], [{ resampled: 1 }, 1]);
  assert.equal(fidelity.trainable_tokens, 2 * ("ok".length + 1), "the sample that came is trained all the same");
  assert.deepEqual(at.told, []);
});

test("an engine that is gone is asked again without a mark: no byte of the call can have left", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open({ purpose: "train" });
  await at.engine[Symbol.asyncDispose]();
  assert.equal((await client.chat({ messages: hi })).status, 503);
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls[0]?.tries.map((one) => [one.error?.code, one.may_have_sampled]),
    [1, 2, 3].map(() => ["engine_unreachable", false]),
  );
  assert.deepEqual([fidelity.uncounted, fidelity.resampled], [{}, 0]);
});

test("a call without ids, without logprobs or with a missing one is left out of training with its reason", async () => {
  for (const [quirk, reason] of [
    ["no_ids", "no_token_ids"],
    ["no_logprobs", "no_logprob"],
    ["one_null_logprob", "no_logprob"],
    ["usage_mismatch", "misaligned"],
    // Imitation trains a call that lacks logprobs only: that its ids have a hole must not hide behind that.
    ["usage_mismatch_no_logprobs", "misaligned"],
    ["duplicated_first_chunk", "misaligned"],
    ["no_usage", "misaligned"],
  ] as const) {
    await using at = await proxyAt((request) => (request.probe ? {} : { text: "text", quirk }));
    const client = await at.open({ purpose: "train" });
    await client.say(hi);
    const trajectory = await client.trajectory();
    assert.equal(trajectory.fidelity.trainable_tokens, 0, quirk);
    assert.match(trajectory.calls[0]!.missing ?? "", new RegExp(`^${reason}`), quirk);
    if (quirk === "one_null_logprob") assert.equal(trajectory.nodes.find((node) => node.kind === "sampled")?.logprobs?.[0], null);
  }
});

test("a generation that the engine aborted is an error, with what was sampled kept", async () => {
  await using at = await proxyAt(() => ({ text: "partial", quirk: "abort" }));
  const client = await at.open();
  assert.equal((await client.chat({ messages: hi })).status, 502);
  const finished = (await client.entries()).find((entry) => entry.type === "call_finished");
  assert.equal(finished?.error?.code, "engine_aborted");
  assert.equal(finished?.sampled_ids?.length, "partial".length + 1);
});

test("a training session at an engine without token ids is refused with what would fix it; a live one goes on text-only", async () => {
  await using at = await proxyAt(() => ({ text: "text", quirk: "no_ids" }));
  await assert.rejects(
    at.open({ purpose: "train" }),
    (error: Error & { code?: string }) => error.code === "engine_without_token_ids" && /return_token_ids/.test(error.message),
  );
  const client = await at.open({ purpose: "live" });
  assert.equal((await client.say(hi)).content, "text");
});

test("sealing a session cancels what runs at the engine", async () => {
  await using at = await proxyAt(() => ({ text: "never", beforeEnd: new Promise(() => undefined) }));
  const client = await at.open();
  const waiting = client.chat({ messages: hi });
  while (at.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await at.proxy.session(client.sessionId).seal("stop");
  assert.ok((await waiting).status >= 400);
  while (at.engine.aborted === 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

for (const { name } of dialects)
  test(`${name}: the engine's own word on when to come back reaches the harness, and is not overruled by second tries`, async () => {
    const { path, body } = dialectRequest(name, false);
    for (const status of [429, 503]) {
      await using at = await proxyAt(() => ({ refuse: { status, message: "come back later", retryAfter: "7" } }));
      const client = await at.open();
      const refused = await client.post(path, body);
      assert.equal(refused.headers.get("retry-after"), "7", `${refused.status} ${await refused.text()}`);
      assert.equal(refused.headers.get("x-should-retry"), null);
      assert.equal(at.engine.requests.length, 1);
    }
  });

test("a streamed Responses failure says in its words when to come back, for it has no headers any more", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ refuse: { status: 429, message: "full", retryAfter: "90" }, before: hold.promise }));
  const client = await at.open();
  const response = await client.post("/v1/responses", { model: "m", input: "hi", stream: true });
  hold.resolve();
  assert.match(await response.text(), /"code":"rate_limit_exceeded","message":"[^"]*Please try again in 90s\."/);
});

test("a second try waits as long as the engine asked for, where that is short", async () => {
  const asked: number[] = [];
  await using at = await proxyAt((_, index) => {
    if (index >= 0) asked.push(performance.now());
    return index === 0 ? { refuse: { status: 503, message: "busy", retryAfter: "1" } } : { text: "ok" };
  });
  const client = await at.open();
  assert.equal((await client.say(hi)).content, "ok");
  assert.ok((asked[1] ?? 0) - (asked[0] ?? 0) >= 990, String(asked));
});

test("a seal ends the wait before a second try", async () => {
  await using at = await proxyAt(() => ({ refuse: { status: 503, message: "busy", retryAfter: "2" } }));
  const client = await at.open();
  const waiting = client.chat({ messages: hi });
  while (at.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const sealed = performance.now();
  await at.proxy.session(client.sessionId).seal("stop");
  assert.ok(performance.now() - sealed < 1_900, "it did not wait for the two seconds");
  assert.ok((await waiting).status >= 400);
  assert.equal(at.engine.requests.length, 1);
});
