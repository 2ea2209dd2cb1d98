import assert from "node:assert/strict";
import { test } from "node:test";
import { dialects } from "../../../proxy/dialects/registry.ts";
import { rebuildSession } from "../../../proxy/index.ts";
import { EngineLease } from "../../../proxy/pool/engine-lease.ts";
import { until } from "../../fakes/machine/until.ts";
import { type EnginesAt, enginesAt } from "../../fakes/proxies/engines-at.ts";

const hi = [{ role: "user", content: "hi" }];
const more = [...hi, { role: "assistant", content: "ok" }, { role: "user", content: "more" }];
const v1 = { version: "v1", step: 1 };
const v2 = { version: "v2", step: 2 };

test("a drain lets what runs end, new calls wait at the gate and are sampled under the new policy", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await enginesAt((_, __, index) => ({ text: "ok", ...(index === 0 ? { beforeEnd: hold.promise } : {}) }), {
    a: { policy: v1 },
  });
  const client = await at.open({ purpose: "train" });
  const running = client.say(hi);
  await until(() => at.calls().a === 1);
  const pausing = at.control("POST", "/pause", { mode: "drain" });
  await until(() => at.proxy.pool.named("a").gate !== null);
  const waiting = client.say([{ role: "user", content: "another" }]);
  await until(() => at.proxy.pool.waiting === 1);
  hold.resolve();
  assert.equal((await running).content, "ok");
  const { body: paused } = await pausing;
  assert.deepEqual([paused.drained, paused.running, paused.held, paused.engines], [true, 1, 0, ["a"]]);
  const health = (await at.control("GET", "/health")).body;
  assert.deepEqual([health.status, health.waiting], ["paused", 1]);
  const named = await at.control("PUT", "/policy", { fence: paused.fence, ...v2 });
  assert.deepEqual(named.body, { policy: v2, engines: ["a"], checked: [], prefix_cache: { a: "not_supported" } });
  assert.equal(at.calls().a, 1, "nothing is sampled from half-loaded weights");
  assert.equal((await at.control("POST", "/resume", { fence: paused.fence })).status, 200);
  await waiting;
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => [call.policy.start?.version, call.policy.end?.version]),
    [
      ["v1", "v1"],
      ["v2", "v2"],
    ],
  );
  assert.deepEqual(fidelity.policy_versions, ["v1", "v2"]);
  assert.equal(fidelity.excluded.unattributed_policy ?? 0, 0);
  assert.equal(new Set(at.engines.a?.requests.map((request) => request.cache_salt)).size, 2, "new weights find no old prefixes");
});

test("a drain that times out, or whose trainer leaves, is no pause: calls flow again", async () => {
  await using at = await enginesAt(
    (_, request) => ({
      text: "ok",
      ...(JSON.stringify(request.messages).includes("slow") ? { beforeEnd: new Promise(() => undefined) } : {}),
    }),
    { a: {} },
  );
  const client = await at.open();
  const slow = client.chat({ messages: [{ role: "user", content: "slow" }] }).catch(() => null);
  await until(() => at.calls().a === 1);
  const late = await at.control("POST", "/pause", { timeout_seconds: 0.05 });
  assert.equal(late.status, 409);
  assert.match(JSON.stringify(late.body), /drain_timeout.*1 calls were still running after 0.05 s/);
  assert.equal((await client.say(hi)).content, "ok");
  const gone = new AbortController();
  const pausing = at.control("POST", "/pause", {}, gone.signal);
  await until(() => at.proxy.pool.named("a").gate !== null);
  gone.abort();
  await assert.rejects(pausing);
  await until(() => at.proxy.pool.named("a").gate === null);
  assert.equal((await client.say(more)).content, "ok");
  await client.proxy.session(client.sessionId).seal("done");
  await slow;
});

test("a drain that is resumed before it is over is no pause: its trainer is told at once, and nothing is alarming", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await enginesAt(() => ({ text: "ok", beforeEnd: hold.promise }), { a: {} }, { pauseAlarmSeconds: 0.05 });
  const client = await at.open();
  const slow = client.say(hi);
  await until(() => at.calls().a === 1);
  const pausing = at.control("POST", "/pause");
  await until(() => at.proxy.pool.named("a").gate !== null);
  await at.control("POST", "/resume", { fence: at.proxy.pool.named("a").gate?.fence });
  const { status, body } = await pausing;
  assert.equal(status, 409);
  assert.match(JSON.stringify(body), /drain_timeout.*was resumed while it drained/);
  hold.resolve();
  await slow;
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.deepEqual(at.told, []);
  assert.equal((await at.control("GET", "/health")).body.status, "ok");
});

test("an aborted generation keeps its partial ids, is answered with a retryable error, and its retry waits and is sampled anew", async () => {
  await using at = await enginesAt(
    (_, __, index) => ({ text: "half", ...(index === 0 ? { beforeEnd: new Promise(() => undefined) } : {}) }),
    { a: { policy: v1 } },
  );
  const client = await at.open({ purpose: "train" });
  const running = client.chat({ messages: hi });
  await until(() => at.calls().a === 1 && at.proxy.pool.named("a").inFlight.size === 1);
  await client.sampled(1);
  const { body: paused } = await at.control("POST", "/pause", { mode: "abort" });
  assert.deepEqual([paused.drained, paused.running], [true, 1]);
  const answer = await running;
  assert.deepEqual([answer.status, answer.headers.get("retry-after"), answer.headers.get("x-should-retry")], [503, "5", null]);
  await until(() => at.engines.a?.aborted === 1);
  const retry = client.say(hi);
  await until(() => at.proxy.pool.waiting === 1);
  await at.control("PUT", "/policy", { fence: paused.fence, ...v2 });
  await at.control("POST", "/resume", { fence: paused.fence });
  assert.equal((await retry).content, "half");
  const finished = (await client.entries()).filter((entry) => entry.type === "call_finished");
  assert.deepEqual(
    finished.map((entry) => entry.error?.code ?? null),
    ["engine_paused", null],
  );
  const whole = finished[1]?.sampled_ids ?? [];
  const partial = finished[0]?.sampled_ids ?? [];
  assert.ok(partial.length > 0);
  assert.deepEqual(partial, whole.slice(0, partial.length));
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.outcome),
    ["failed", "delivered"],
  );
  assert.equal(fidelity.trainable_tokens, 5);
});

test("of a call held across an update, the tokens that came before the hold are of the old policy, and the others are not trained", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await mixedAt(hold.promise);
  const { client, running, paused } = await holdAfterThree(at);
  assert.deepEqual([paused.drained, paused.held], [false, 1]);
  await at.control("PUT", "/policy", { fence: paused.fence, ...v2 });
  await at.control("POST", "/resume", { fence: paused.fence });
  hold.resolve();
  await running;
  const { calls, nodes, fidelity } = await client.trajectory();
  assert.deepEqual([calls[0]?.policy.start, calls[0]?.policy.end], [v1, v2]);
  assert.deepEqual(fidelity.excluded, { unattributed_policy: "mixed".length + 1 - 3 });
  assert.deepEqual(
    nodes.filter(({ kind }) => kind === "sampled").map((node) => [node.policy_version, node.token_ids.length, node.trainable]),
    [
      ["v1", 3, true],
      [null, 3, false],
    ],
  );
});

test("of a call held across an update, all tokens are trained if the engine tells which weights sampled which, split where it says", async () => {
  const hold = Promise.withResolvers<void>();
  const weightSpans = [
    { version: "v1", start: 0, end: 4 },
    { version: "v2", start: 4, end: "mixed".length + 1 },
  ];
  await using at = await mixedAt(hold.promise, { weightSpans });
  const { client, running, paused } = await holdAfterThree(at);
  await at.control("PUT", "/policy", { fence: paused.fence, ...v2 });
  await at.control("POST", "/resume", { fence: paused.fence });
  hold.resolve();
  await running;
  const { nodes, fidelity } = await client.trajectory();
  assert.deepEqual([fidelity.trainable_tokens, fidelity.excluded.unattributed_policy ?? 0], ["mixed".length + 1, 0]);
  assert.deepEqual(
    nodes.filter(({ kind }) => kind === "sampled").map((node) => [node.policy_version, node.token_ids.length]),
    [
      ["v1", 4],
      ["v2", 2],
    ],
  );
});

test("weights that are named outside of the hold attribute nothing, and a hold without other weights changes nothing", async () => {
  for (const isPushed of [true, false]) {
    const hold = Promise.withResolvers<void>();
    await using at = await mixedAt(hold.promise);
    const { client, running, paused } = await holdAfterThree(at);
    await at.control("POST", "/resume", { fence: paused.fence });
    if (isPushed) await at.control("PUT", "/policy", v2);
    hold.resolve();
    await running;
    const { fidelity } = await client.trajectory();
    const all = "mixed".length + 1;
    assert.deepEqual([fidelity.trainable_tokens, fidelity.excluded.unattributed_policy ?? 0], isPushed ? [0, all] : [all, 0]);
  }
});

/** An engine whose answer stops after three tokens, until `wait` is over. */
function mixedAt(wait: Promise<void>, told: Pick<Parameters<typeof enginesAt>[1][string], "weightSpans"> = {}): Promise<EnginesAt> {
  return enginesAt(() => ({ text: "mixed", beforeToken: { after: 3, wait } }), { a: { policy: v1, ...told } });
}

async function holdAfterThree(at: EnginesAt) {
  const client = await at.open({ purpose: "train" });
  const running = client.say(hi);
  await until(() => sampledAt(at) === 3);
  const { body: paused } = await at.control("POST", "/pause", { mode: "hold" });
  return { client, running, paused };
}

/** The tokens that the one call at engine `a` has got so far. */
function sampledAt(at: EnginesAt): number {
  const [lease] = at.proxy.pool.named("a").inFlight;
  return lease instanceof EngineLease ? lease.sampled() : 0;
}

test("weights that change under a call are noticed where only their step does, and where they change there and back", async () => {
  for (const pushes of [[{ version: "v1", step: 2 }], [v2, v1]]) {
    const hold = Promise.withResolvers<void>();
    await using at = await enginesAt(() => ({ text: "mixed", beforeEnd: hold.promise }), { a: { policy: v1 } });
    const client = await at.open({ purpose: "train" });
    const running = client.say(hi);
    await until(() => at.calls().a === 1 && at.proxy.pool.named("a").inFlight.size === 1);
    for (const policy of pushes) assert.equal((await at.control("PUT", "/policy", policy)).status, 200);
    hold.resolve();
    await running;
    const { fidelity } = await client.trajectory();
    assert.deepEqual([fidelity.trainable_tokens, fidelity.excluded.unattributed_policy], [0, "mixed".length + 1]);
  }
});

test("weights that are named for the first time are no others", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await enginesAt(() => ({ text: "ok", beforeEnd: hold.promise }), { a: {} });
  const client = await at.open({ purpose: "train" });
  const running = client.say(hi);
  await until(() => at.calls().a === 1 && at.proxy.pool.named("a").inFlight.size === 1);
  await at.control("PUT", "/policy", v1);
  hold.resolve();
  await running;
  assert.equal((await client.trajectory()).fidelity.excluded.unattributed_policy ?? 0, 0);
});

test("weights that are named for the first time in a hold are other ones: what came before has no name, and what follows is of unknown weights", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await enginesAt(() => ({ text: "mixed", beforeToken: { after: 3, wait: hold.promise } }), { a: {} });
  const { client, running, paused } = await holdAfterThree(at);
  await at.control("PUT", "/policy", { fence: paused.fence, ...v1 });
  await at.control("POST", "/resume", { fence: paused.fence });
  hold.resolve();
  await running;
  const { nodes } = await client.trajectory();
  assert.deepEqual(
    nodes.flatMap(({ kind, token_ids, policy_version, reason }) =>
      kind === "sampled" ? [[token_ids.length, policy_version, reason]] : [],
    ),
    [
      [3, null, null],
      [3, null, "unattributed_policy"],
    ],
  );
});

test("a policy that is named again as it was is no change", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await enginesAt(() => ({ text: "ok", beforeEnd: hold.promise }), { a: { policy: v1 } });
  const client = await at.open({ purpose: "train", policy_mode: "pin" });
  const running = client.say(hi);
  await until(() => at.calls().a === 1 && at.proxy.pool.named("a").inFlight.size === 1);
  await at.control("PUT", "/policy", v1);
  hold.resolve();
  await running;
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(calls[0]?.policy, { start: v1, end: v1, spans: [], check: "unchecked" });
  assert.equal(fidelity.trainable_tokens, "ok".length + 1);
});

test("the engine's own word is asked: a mismatch is an error that names both", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), {
    a: { policy: v1, weightVersion: "v1" },
    b: { policy: v1, weightVersion: "default" },
    c: {},
  });
  const { body: paused } = await at.control("POST", "/pause");
  const early = await at.control("PUT", "/policy", { fence: paused.fence, ...v2 });
  assert.equal(early.status, 409);
  assert.match(JSON.stringify(early.body), /would be \\"v2\\", but engine \\"a\\" says that it serves \\"v1\\"/);
  assert.deepEqual(at.proxy.policy, v1);
  if (at.engines.a) at.engines.a.weightVersion = "v2";
  assert.deepEqual((await at.control("PUT", "/policy", { fence: paused.fence, ...v2 })).body.checked, ["a"]);
  if (at.engines.a) at.engines.a.weightVersion = "ckpt-000200";
  const named = await at.control("PUT", "/policy", { fence: paused.fence, ...v2, engine_version: "ckpt-000200" });
  assert.deepEqual(named.body.checked, ["a"]);
});

test("engines are updated one after the other: calls go to those whose gate is open", async () => {
  await using at = await enginesAt((name) => ({ text: name }), { a: { policy: v1 }, b: { policy: v1 } });
  const client = await at.open();
  const first = (await client.say(hi)).content as string;
  const other = first === "a" ? "b" : "a";
  const { body: paused } = await at.control("POST", "/pause", { engines: [first] });
  assert.equal((await client.say([...hi, { role: "assistant", content: first }, ...hi])).content, other);
  const twice = await at.control("POST", "/pause");
  assert.equal(twice.status, 409);
  assert.match(JSON.stringify(twice.body), /paused already, by fence/);
  const outside = await at.control("PUT", "/policy", { fence: paused.fence, ...v2, engines: [other] });
  assert.match(JSON.stringify(outside.body), /is not within fence/);
  await at.control("PUT", "/policy", { fence: paused.fence, ...v2 });
  await at.control("POST", "/resume", { fence: paused.fence });
  assert.deepEqual(
    ((await at.control("GET", "/engines")).body.engines as { policy: unknown }[]).map((engine) => engine.policy),
    first === "a" ? [v2, v1] : [v1, v2],
  );
});

test("an engine within a fence is neither removed nor replaced, forced or not: what comes in its place would stand open", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: v1 }, b: { policy: v1 } });
  const { body: paused } = await at.control("POST", "/pause");
  const again = { name: "a", url: at.engines.a?.url };
  for (const [method, path, body] of [
    ["DELETE", "/engines/a", undefined],
    ["DELETE", "/engines/a?force=true", undefined],
    ["POST", "/engines", { ...again, replace: true }],
  ] as const) {
    const refused = await at.control(method, path, body);
    assert.equal(refused.status, 409, path);
    assert.match(JSON.stringify(refused.body), new RegExp(`paused for a weight update: resume fence ${paused.fence} first`));
  }
  await at.control("POST", "/resume", { fence: paused.fence });
  assert.equal((await at.control("DELETE", "/engines/a")).status, 200);
  assert.equal((await at.control("POST", "/engines", again)).status, 201);
});

test("a call that waited and was sampled by an engine without a policy has none", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: v1 }, b: {} });
  await at.control("POST", "/engines/b/drain");
  const client = await at.open();
  const { body: paused } = await at.control("POST", "/pause", { engines: ["a"] });
  const waiting = client.say(hi);
  await until(() => at.proxy.pool.waiting === 1);
  await at.control("POST", "/engines/b/undrain");
  await waiting;
  assert.deepEqual((await client.trajectory()).calls[0]?.policy, { start: null, end: null, spans: [], check: null });
  await at.control("POST", "/resume", { fence: paused.fence });
});

test("a pinned session is sampled by its own policy only; a floating one goes on under the next", async () => {
  await using at = await enginesAt((name) => ({ text: name }), { a: { policy: v1 }, b: { policy: v1 } });
  const [pinned, floating] = [await at.open({ policy_mode: "pin" }), await at.open({ policy_mode: "float" })];
  const home = (await pinned.say(hi)).content as string;
  await floating.say(hi);
  await at.control("PUT", "/policy", { ...v2, engines: [home] });
  const moved = await pinned.say(more);
  assert.notEqual(moved.content, home, "the engine that is still at v1");
  await at.control("PUT", "/policy", v2);
  assert.equal(typeof (await floating.say(more)).content, "string");
  const refused = await pinned.chat({ messages: [...more, { role: "user", content: "again" }] });
  assert.deepEqual([refused.status, refused.headers.get("x-should-retry")], [400, "false"]);
  assert.match(await refused.text(), /policy_gone|pinned to policy/);
  assert.deepEqual((await at.control("GET", `/sessions/${pinned.sessionId}`)).body.pinned, v1);
  const { calls } = await pinned.trajectory();
  assert.ok(calls.every((call) => call.policy.start?.version === "v1" && call.policy.end?.version === "v1"));
});

test("a pinned session takes no other step under the name of its policy", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: v1 } });
  const pinned = await at.open({ policy_mode: "pin" });
  await pinned.say(hi);
  await at.control("PUT", "/policy", { version: "v1", step: 2 });
  const refused = await pinned.chat({ messages: more });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /pinned to policy \\"v1\\" \(step 1\).*there are: \\"v1\\" \(step 2\)/);
});

test("a session that is given a policy is sampled by that one only, from its first call on", async () => {
  await using at = await enginesAt((name) => ({ text: name }), { a: { policy: v1 }, b: { policy: v2 } });
  for (const [pinned_policy, home] of [
    [v1, "a"],
    [v2, "b"],
  ] as const) {
    const given = await at.open({ pinned_policy });
    for (const messages of [hi, more]) assert.equal((await given.say(messages)).content, home);
    assert.deepEqual((await at.control("GET", `/sessions/${given.sessionId}`)).body.pinned, pinned_policy);
  }
  const gone = await at.open({ pinned_policy: { version: "v3", step: null } });
  const refused = await gone.chat({ messages: hi });
  assert.equal(refused.status, 400);
  assert.match(
    await refused.text(),
    /pinned to policy \\"v3\\", which no engine serves \(there are: \\"v1\\" \(step 1\), \\"v2\\" \(step 2\)\)/,
  );
});

test("what was held of a pinned session ends when its engine gets other weights", async () => {
  await using at = await enginesAt(() => ({ text: "held", beforeEnd: new Promise(() => undefined) }), { a: { policy: v1 } });
  const pinned = await at.open({ policy_mode: "pin" });
  const running = pinned.chat({ messages: hi });
  await until(() => at.proxy.pool.named("a").inFlight.size === 1 && at.calls().a === 1);
  const { body: paused } = await at.control("POST", "/pause", { mode: "hold" });
  await at.control("PUT", "/policy", { fence: paused.fence, ...v2 });
  assert.equal((await running).status, 400);
  assert.equal((await pinned.entries()).find((entry) => entry.type === "call_finished")?.error?.code, "policy_gone");
});

/** A streamed request of every dialect, the same without a stream, and a frame that is a sign of life in it. */
const asked: Record<string, { stream: [string, unknown]; whole: [string, unknown]; alive: RegExp }> = {
  "anthropic-messages": { ...streamed("/v1/messages", { model: "m", max_tokens: 9, messages: hi }), alive: /event: ping/g },
  "openai-chat": { ...streamed("/v1/chat/completions", { model: "m", messages: hi }), alive: /"delta":\{\}/g },
  "openai-responses": { ...streamed("/v1/responses", { model: "m", input: "hi" }), alive: /event: response\.in_progress/g },
  "openai-completions": { ...streamed("/v1/completions", { model: "m", prompt: "hi" }), alive: /"text":""/g },
  "google-generate-content": {
    stream: ["/v1beta/models/m:streamGenerateContent?alt=sse", { contents: [{ role: "user", parts: [{ text: "hi" }] }] }],
    whole: ["/v1beta/models/m:generateContent", { contents: [{ role: "user", parts: [{ text: "hi" }] }] }],
    alive: /"parts":\[\]|"parts":\[\{"text":""\}\]/g,
  },
};

function streamed(path: string, body: Record<string, unknown>): { stream: [string, unknown]; whole: [string, unknown] } {
  return { stream: [path, { ...body, stream: true }], whole: [path, body] };
}

for (const { name } of dialects)
  test(`${name}: a client at the gate gets its dialect's own keep-alives`, async () => {
    const example = asked[name];
    assert.ok(example, "every dialect is asked here");
    await using at = await enginesAt(() => ({ text: "ok" }), { a: {} }, { keepAliveMs: 50 });
    const { body: paused } = await at.control("POST", "/pause");
    for (const relay of ["buffered", "live"] as const) {
      const [path, body] = example.stream;
      const response = await (await at.open({ relay })).post(path, body);
      assert.equal(response.status, 200, "headers leave after a second, so that no client takes the server for dead");
      let text = "";
      const signs = () => text.match(example.alive)?.length ?? 0;
      for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += piece;
        if (signs() >= 3) break;
      }
      assert.ok(signs() >= 3, text);
    }
    await at.control("POST", "/resume", { fence: paused.fence });
  });

for (const { name } of dialects)
  test(`${name}: past the bound a client at the gate gets a retryable error of its dialect`, async () => {
    const example = asked[name];
    assert.ok(example, "every dialect is asked here");
    await using at = await enginesAt(() => ({ text: "ok" }), { a: {} }, { pauseWaitSeconds: 1.5 });
    await at.control("POST", "/pause");
    const post = async (relay: "buffered" | "live", [path, body]: [string, unknown]): Promise<Response> =>
      (await at.open({ relay })).post(path, body);
    const [buffered, live, whole] = await Promise.all([
      post("buffered", example.stream),
      post("live", example.stream),
      post("live", example.whole),
    ]);
    for (const response of [buffered, live]) {
      assert.equal(response.status, 200);
      const text = await response.text();
      assert.match(text.slice(text.lastIndexOf("data:")), /have been paused for a weight update for more than 1.5 s/);
    }
    assert.deepEqual([whole.status, whole.headers.get("retry-after")], [503, "5"]);
    assert.equal(at.calls().a, 0);
  });

test("time at a shut gate is charged to no budget, also after a restart", async () => {
  const clock = { max_wall_seconds: 3 };
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  const client = await at.open({ budgets: clock });
  await client.say(hi);
  const { body: paused } = await at.control("POST", "/pause");
  const waiting = client.say(more);
  await until(() => at.proxy.pool.waiting === 1);
  await new Promise((resolve) => setTimeout(resolve, 3_300));
  await at.control("POST", "/resume", { fence: paused.fence });
  await waiting;
  assert.equal((await client.chat({ messages: [...more, ...hi] })).status, 200);
  const pauses = (await client.entries()).flatMap((entry) => (entry.type === "call_finished" ? (entry.pauses ?? []) : []));
  assert.equal(pauses.length, 1);
  assert.ok((pauses[0]?.to ?? 0) - (pauses[0]?.from ?? 0) >= 3_200);
  const session = at.proxy.session(client.sessionId);
  const rebuilt = await rebuildSession(at.proxy.sessions.store, client.sessionId);
  const [from, to] = [session.state.opened.time, Date.now()];
  assert.equal(rebuilt?.pausedSince(from, to), session.pausedSince(from, to));
});

test("a pause that is not ended is alarming: the operator is told, and health says so", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} }, { pauseAlarmSeconds: 0.05 });
  const { body: paused } = await at.control("POST", "/pause");
  await until(() => at.told.length >= 2);
  assert.match(at.told[0] ?? "", new RegExp(`a paused for .* the gate opens with POST /resume .*${paused.fence}`));
  const { status, body: health } = await at.control("GET", "/health");
  assert.deepEqual([status, health.status], [503, "alarm"]);
  assert.match(String(health.reason), new RegExp(`^a paused since .*: POST /resume with fence ${paused.fence} opens the gate$`));
  assert.notEqual(at.proxy.pool.named("a").gate, null, "and it stays shut");
  await at.control("POST", "/resume", { fence: paused.fence });
  assert.equal((await at.control("GET", "/health")).body.status, "ok");
});

test("a seal ends a call that waits at the gate", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  await at.control("POST", "/pause");
  const client = await at.open();
  const waiting = client.chat({ messages: hi });
  await until(() => at.proxy.pool.waiting === 1);
  assert.equal((await at.control("POST", `/sessions/${client.sessionId}/seal`)).status, 200);
  assert.ok((await waiting).status >= 400);
  assert.equal(at.calls().a, 0);
});
