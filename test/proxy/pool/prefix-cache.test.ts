/** Keys and values that old weights computed: how they are dropped, and what keeps new calls from those that stay. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { engineNamed } from "../../../engines/registry.ts";
import { startPracticeEngine } from "../../../practice/start.ts";
import { patience, request, withEngine } from "../../contracts/engine-cases.ts";
import { until } from "../../fakes/machine/until.ts";
import { type EnginesAt, enginesAt } from "../../fakes/proxies/engines-at.ts";

const hi = [{ role: "user", content: "hi" }];
const v1 = { version: "v1", step: 1 };
const v2 = { version: "v2", step: 2 };

const salts = (at: EnginesAt): unknown[] => at.engines.a?.requests.map((request) => request.cache_salt) ?? [];

async function update(at: EnginesAt, policy: object | null): Promise<Record<string, unknown>> {
  const { body: paused } = await at.control("POST", "/pause");
  if (policy) assert.equal((await at.control("PUT", "/policy", { fence: paused.fence, ...policy })).status, 200);
  return (await at.control("POST", "/resume", { fence: paused.fence })).body;
}

test("PUT /policy and resume say of every engine what became of its prefix cache", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: v1 }, b: { policy: v1 }, c: { policy: v1 } });
  if (at.engines.a) at.engines.a.prefixReset = { success: true };
  if (at.engines.b) at.engines.b.prefixReset = { success: false };
  const { body: paused } = await at.control("POST", "/pause");
  const want = { a: "reset", b: "failed", c: "not_supported" };
  assert.deepEqual((await at.control("PUT", "/policy", { fence: paused.fence, ...v2 })).body.prefix_cache, want);
  assert.deepEqual((await at.control("POST", "/resume", { fence: paused.fence })).body.prefix_cache, want);
});

test("weights that are loaded under the same name, or under none, find no prefix of the old ones", async () => {
  for (const policy of [v1, null]) {
    await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy } });
    const client = await at.open();
    await client.say(hi);
    await client.say(hi);
    await update(at, policy);
    await client.say(hi);
    await update(at, null);
    await client.say(hi);
    const [first, second, third, fourth] = salts(at);
    assert.ok(typeof first === "string" && first !== "" && first === second, "the same weights share their prefixes");
    assert.equal(new Set([first, third, fourth]).size, 3);
  }
});

test("weights that are pushed without a fence are sampled under another salt from then on, and two proxies share none", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: v1 } });
  const client = await at.open();
  await client.say(hi);
  await at.control("PUT", "/policy", v1);
  await client.say(hi);
  await using other = await enginesAt(() => ({ text: "ok" }), { a: { policy: v1 } });
  await (await other.open()).say(hi);
  assert.equal(new Set([...salts(at), ...salts(other)]).size, 3);
});

test("a call that is held across an update keeps its salt, so nothing after the update is sampled on its old keys", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await enginesAt((_, __, index) => ({ text: "ok", ...(index === 0 ? { beforeEnd: hold.promise } : {}) }), {
    a: { policy: v1 },
  });
  if (at.engines.a) at.engines.a.prefixReset = { success: false };
  const [held, other] = [await at.open(), await at.open()];
  const running = held.say(hi);
  await until(() => at.calls().a === 1);
  const { body: paused } = await at.control("POST", "/pause", { mode: "hold" });
  const { body: resumed } = await at.control("POST", "/resume", { fence: paused.fence });
  assert.deepEqual(resumed.prefix_cache, { a: "failed" });
  await other.say(hi);
  hold.resolve();
  await running;
  assert.equal(new Set(salts(at)).size, 2);
});

test("sglang is told by /flush_cache, vLLM without its development mode says that it cannot be told, llama-server has no way", async () => {
  for (const [kind, want] of [
    ["sglang", "reset"],
    ["vllm", "not_supported"],
    ["llama-cpp", undefined],
  ] as const)
    await withEngine(kind, { text: "x" }, async (engine) => {
      assert.equal(await engine.resetPrefixCache?.(patience()), want, kind);
    });
});

test("the practice engine drops what it has read", async (t) => {
  await using practice = await startPracticeEngine({ signal: t.signal });
  const engine = engineNamed("vllm").create({ baseUrl: practice.url, apiKey: null });
  t.after(() => engine.close());
  const messages = [{ role: "user" as const, parts: [{ type: "text" as const, text: "word ".repeat(50) }] }];
  const long = request({ model: "practice", messages, sampling: { max_tokens: 1 } });
  const cached = async (): Promise<number | null> => {
    const end = (await Array.fromAsync(engine.sample(long, t.signal))).find((event) => event.type === "end");
    return end?.usage.cached_tokens ?? null;
  };
  assert.equal(await cached(), 0);
  assert.ok(((await cached()) ?? 0) > 0);
  assert.equal(await engine.resetPrefixCache?.(t.signal), "reset");
  assert.equal(await cached(), 0);
});
