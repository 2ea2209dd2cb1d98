/** The name of the weights against what the engine itself calls them: a label that is wrong is refused, or is none. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../fakes/machine/until.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";

const hi = [{ role: "user", content: "hi" }];
const nope = { version: "nope", step: 99 };
const step3 = { version: "step-3", step: 3 };
const both = /would be "nope", but engine "a" says that it serves "step-3"/;

test("an engine that says another name than it is configured with is refused, and both names are said", async () => {
  await assert.rejects(
    enginesAt(() => ({ text: "ok" }), { a: { policy: nope, weightVersion: "step-3" } }),
    { code: "request_invalid", message: both },
  );
  await assert.rejects(
    enginesAt(() => ({ text: "ok" }), { a: { weightVersion: "step-3" } }, { policy: nope }),
    { message: both },
  );
});

test("an engine's own name for the weights may be another one than the trainer's, and one without a word is unchecked", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), {
    a: { policy: step3, weightVersion: "step-3" },
    b: { policy: step3, engineVersion: "ckpt-000300", weightVersion: "ckpt-000300" },
    c: { policy: step3, weightVersion: "default" },
    d: { policy: step3 },
    e: { weightVersion: "step-3" },
  });
  const { engines } = (await at.control("GET", "/engines")).body as { engines: { policy_check: string | null }[] };
  assert.deepEqual(
    engines.map((engine) => engine.policy_check),
    ["agrees", "agrees", "unchecked", "unchecked", null],
  );
});

test("an engine that is added at run time is asked too", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { weightVersion: "step-3" } });
  const again = { name: "late", url: at.engines.a?.url, policy: nope };
  const refused = await at.control("POST", "/engines", again);
  assert.equal(refused.status, 409);
  assert.match(JSON.stringify(refused.body), /\\"nope\\".*\\"late\\".*\\"step-3\\"/);
  assert.equal((await at.control("POST", "/engines", { ...again, engine_version: "step-3" })).status, 201);
});

test("a gate is not opened on weights that say another name than theirs", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: step3, weightVersion: "step-3" } });
  const { body: paused } = await at.control("POST", "/pause");
  if (at.engines.a) at.engines.a.weightVersion = "step-4";
  const early = await at.control("POST", "/resume", { fence: paused.fence });
  assert.equal(early.status, 409);
  assert.match(JSON.stringify(early.body), /\\"step-3\\".*\\"step-4\\".*PUT \/policy/);
  assert.equal((await at.control("PUT", "/policy", { fence: paused.fence, version: "step-4", step: 4 })).status, 200);
  assert.equal((await at.control("POST", "/resume", { fence: paused.fence })).status, 200);
});

test("an engine that was restarted with other weights has no policy until they are named: its calls are stamped with none", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: step3, weightVersion: "step-3" } });
  const client = await at.open();
  await client.say(hi);
  assert.ok(at.engines.a);
  at.engines.a.isSick = true;
  const { breaker } = at.proxy.pool.named("a");
  while (!breaker.isOpen) await (await at.open()).chat({ messages: hi });
  at.engines.a.weightVersion = "default";
  at.engines.a.isSick = false;
  await until(() => !breaker.isOpen);
  await client.say([{ role: "user", content: "another" }]);
  assert.equal((await client.trajectory()).calls.at(-1)?.policy.start, null);
  assert.match(at.told.join("\n"), /engine "a" serves other weights: it said "step-3" and says "default" now.*PUT \/policy/);
  await at.control("PUT", "/policy", { ...step3, engine_version: "default" });
  assert.deepEqual(at.proxy.policy, step3);
});

test("an engine that told no name before and tells another one than its policy's now has no policy any more", async (t) => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { policy: step3 }, b: { policy: step3 }, c: { policy: step3 } });
  for (const [name, word] of Object.entries({ a: "step-4", b: "default", c: "step-3" })) {
    assert.ok(at.engines[name]);
    at.engines[name].weightVersion = word;
  }
  await at.proxy.pool.watch.recheck(t.signal);
  const policyOf = (name: string) => at.proxy.pool.named(name).policy?.version ?? null;
  assert.deepEqual(["a", "b", "c"].map(policyOf), [null, "step-3", "step-3"]);
  assert.match(at.told.join("\n"), /engine "a" serves other weights: it said no name and says "step-4" now.*PUT \/policy/);
});

test("the record says of each call whether the engine's own word was held against the policy's name", async () => {
  const policy = { version: "step-3", step: 3 };
  await using at = await enginesAt(() => ({ text: "hello" }), {
    says: { policy, weightVersion: "step-3", models_served: ["a"], models: ["a"] },
    silent: { policy, models_served: ["b"], models: ["b"] },
    unnamed: { models_served: ["c"], models: ["c"] },
  });
  const client = await at.open();
  for (const [index, model] of ["a", "b", "c"].entries()) await client.say([{ role: "user", content: `${index}` }], { model });
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.policy.check),
    ["agrees", "unchecked", null],
  );
  assert.deepEqual(fidelity.policy_checks, { agrees: 1, unchecked: 1 });
  const tries = (await client.entries()).flatMap((entry) => (entry.type === "tried" ? [entry.policy_check] : []));
  assert.deepEqual(tries, ["agrees", "unchecked", undefined]);
});
