/** A name leads to the weights that it names, or nowhere: a typing error is not trained as the base model. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import type { Client } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];
const reply = (name: string) => ({ text: `by ${name}` });
const strict = { any_model: false, purpose: "train" } as const;

async function asked(client: Client, model: string, messages: unknown[] = hi): Promise<{ status: number; said: string }> {
  const response = await client.chat({ messages, model });
  return { status: response.status, said: await response.text() };
}

test("a name that no engine serves is refused; the error lists the served names and the cure, and nothing is sampled", async () => {
  await using at = await enginesAt(reply, { a: { models_served: ["qwen"] }, b: { models: ["judge-*"], purpose: "eval" } });
  const client = await at.open(strict);
  const { status, said } = await asked(client, "qwenn");
  assert.equal(status, 404);
  const { error } = JSON.parse(said) as { error: { code: string; param: string; message: string } };
  assert.deepEqual([error.code, error.param], ["model_not_found", "model"]);
  assert.match(error.message, /no engine serves the model "qwenn"; they serve qwen, scripted\..*routes.*any_model: true \(--any-model\)/);
  assert.equal((await asked(client, "qwenn@7")).status, 404);
  const count = await client.post("/v1/messages/count_tokens", { model: "qwenn", messages: hi });
  assert.equal(count.status, 404);
  assert.deepEqual(at.calls(), { a: 0, b: 0 });
  assert.equal((await asked(client, "qwen")).status, 200);
  assert.equal((await asked(client, "judge-9", [{ role: "user", content: "judge" }])).status, 200, "globs of an engine take it");
});

test("in a session with any_model, or in a sandbox, the policy answers for any name", async () => {
  await using at = await enginesAt(reply, { a: { models_served: ["qwen"] } });
  for (const spec of [{ any_model: true }, { any_model: false, sandboxed: true }]) {
    const client = await at.open({ ...spec, purpose: "train" });
    const listed = at.engines.a?.listed;
    assert.equal((await asked(client, "claude-haiku-4-5")).status, 200);
    assert.equal(at.engines.a?.requests.at(-1)?.model, "qwen");
    assert.equal(at.engines.a?.listed, listed, "no engine is asked again for it");
  }
});

test("an operator's rule can route a name that no engine lists", async () => {
  const routes = [
    { model: "small", engine: "a" },
    { model: "lora", engine_model: "qwen" },
    { model: "named", policy: { version: "x", step: null } },
  ];
  await using at = await enginesAt(reply, { a: { models_served: ["qwen"] } }, { routes });
  const client = await at.open(strict);
  assert.equal((await asked(client, "small")).status, 200);
  assert.equal((await asked(client, "lora")).status, 200);
  assert.equal((await asked(client, "named")).status, 404, "a rule that names weights alone leads to no engine");
});

test("an adapter and its base model are two policies", async () => {
  await using at = await enginesAt(reply, { a: { models_served: ["base"], policy: { version: "v1", step: 1 } } });
  const { a } = at.engines;
  assert.ok(a);
  a.adapters = { lora: "base", "lora@7": "base" };
  // The adapters were loaded after the probe: a call with their name makes the proxy ask again.
  const client = await at.open({ ...strict, model: "lora" });
  for (const model of ["lora", "lora@7", "base"])
    assert.equal((await asked(client, model, [{ role: "user", content: model }])).status, 200);
  assert.deepEqual(
    a.requests.map(({ model }) => model),
    ["lora", "lora@7", "base"],
  );
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ policy, other_policy }) => [policy?.start?.version, policy?.start?.step, other_policy]),
    [
      ["lora", null, false],
      ["lora@7", 7, false],
      ["v1", 1, true],
    ],
  );
  assert.equal((await asked(client, "lora@1")).status, 404, "the step of the base model is none of the adapter's");
});

test("unknown names never mean an adapter, even if adapters are listed first", async () => {
  await using at = await enginesAt(reply, { a: { models_served: ["base"] } });
  const { a } = at.engines;
  assert.ok(a);
  a.adapters = { lora: "base" };
  const strictly = await at.open(strict);
  assert.equal((await asked(strictly, "lora")).status, 200);
  const loose = await at.open({ any_model: true });
  assert.equal((await asked(loose, "any")).status, 200);
  assert.deepEqual(
    a.requests.map(({ model }) => model),
    ["lora", "base"],
  );
});

test("calls with unknown names share a few lists of models, and each call finds what was loaded before it", async () => {
  await using at = await enginesAt(reply, { a: { models_served: ["base"] } });
  const { a } = at.engines;
  assert.ok(a);
  const client = await at.open(strict);
  const [before, began] = [a.listed, Date.now()];
  const wrong = await Promise.all(Array.from({ length: 50 }, (_, index) => asked(client, `wrong-${index}`)));
  assert.deepEqual([...new Set(wrong.map(({ status }) => status))], [404]);
  const seconds = (Date.now() - began) / 1_000;
  assert.ok(a.listed - before <= 2 + seconds, `${a.listed - before} lists for fifty calls in ${seconds} s`);
  const late = asked(client, "wrong");
  a.adapters = { lora: "base" };
  assert.equal((await asked(client, "lora")).status, 200);
  await late;
});

test("the model of a draining engine goes to no other engine's model", async () => {
  await using at = await enginesAt(reply, { a: { models_served: ["qwen"] }, b: { models_served: ["llama"] } });
  const open = await at.open(strict);
  const inside = await at.open({ sandboxed: true, purpose: "train", model: "qwen" });
  await at.control("POST", "/engines/a/drain", {});
  for (const client of [open, inside]) {
    const { status, said } = await asked(client, "qwen");
    assert.equal(status, 503);
    assert.match(said, /there is no engine for model \\"qwen\\"; engines: a \(draining\)/);
  }
  assert.equal((await asked(open, "llama")).status, 200);
  await at.control("POST", "/engines/a/undrain", {});
  for (const client of [open, inside]) assert.equal((await asked(client, "qwen", [{ role: "user", content: "again" }])).status, 200);
  assert.deepEqual(at.calls(), { a: 2, b: 1 });
});
