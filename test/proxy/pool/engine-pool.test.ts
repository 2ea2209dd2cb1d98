import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../fakes/machine/until.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";

const hi = [{ role: "user", content: "hi" }];
const turns = (count: number): { role: string; content: string }[] =>
  Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: index % 2 === 0 ? `turn ${index}` : "ok",
  }));

test("a session stays at the engine that holds its prefix, and sessions are spread over the engines", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {}, b: {} });
  const clients = [await at.open(), await at.open()];
  for (const client of clients) for (const count of [1, 3, 5]) await client.say(turns(count));
  assert.deepEqual(at.calls(), { a: 3, b: 3 });
  for (const client of clients) {
    const { calls } = await client.trajectory();
    assert.equal(new Set(calls.map((call) => call.engine_name)).size, 1);
    assert.deepEqual(
      calls.map((call) => call.match),
      ["root", "exact", "exact"],
    );
  }
});

test("a call goes to the engine with the least to do", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await enginesAt((name) => (name === "a" ? { text: "slow", beforeEnd: hold.promise } : { text: "ok" }), { a: {}, b: {} });
  const busy = (await at.open()).say(hi);
  await until(() => at.calls().a === 1);
  for (let index = 0; index < 4; index++) await (await at.open()).say(hi);
  assert.deepEqual(at.calls(), { a: 1, b: 4 });
  hold.resolve();
  await busy;
});

test("when a session's engine is gone the next try goes to another one, on the record, and the session stays there", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {}, b: {} });
  const client = await at.open();
  await client.say(turns(1));
  const [first] = (await client.trajectory()).calls;
  const gone = first?.engine_name as string;
  await at.engines[gone]?.[Symbol.asyncDispose]();
  await client.say(turns(3));
  await client.say(turns(5));
  const { calls, fidelity } = await client.trajectory();
  assert.notEqual(calls[1]?.engine_name, gone);
  assert.deepEqual(
    calls.map((call) => [call.tries.length, call.match]),
    [
      [1, "root"],
      [2, "exact"],
      [1, "exact"],
    ],
  );
  assert.equal(calls[1]?.tries[0]?.error?.code, "engine_unreachable");
  assert.equal(fidelity.resampled, 0);
});

test("an engine that fails three times in a row is left alone until it answers again", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {}, b: {} });
  const sick = at.engines.a;
  assert.ok(sick);
  sick.isSick = true;
  const codes: number[] = [];
  const ask = async (): Promise<unknown> => codes.push((await (await at.open()).chat({ messages: hi })).status);
  while (codes.filter((code) => code === 502).length < 3) await ask();
  await until(() => at.proxy.pool.named("a").breaker.isOpen);
  while (codes.length < 12) await ask();
  assert.equal(codes.filter((code) => code === 502).length, 3, `a 500 may depend on the sample and is never tried again: ${codes}`);
  assert.equal(at.calls().b, 9);
  assert.ok(at.told.some((line) => /engine "a" is left alone/.test(line)));
  const reason = `engine a does not answer since ${new Date(at.proxy.pool.named("a").breaker.openSince ?? 0).toISOString()}`;
  const health = async () => {
    const { status, body } = await at.control("GET", "/health");
    return [status, body.status, body.reason];
  };
  assert.deepEqual(await health(), [200, "degraded", reason]);
  await at.control("POST", "/engines/b/drain", {});
  const drained = "engine b is draining: POST /engines/b/undrain gives it calls again";
  assert.deepEqual(await health(), [503, "down", `${reason}; ${drained}`]);
  await at.control("POST", "/engines/b/undrain", {});
  sick.isSick = false;
  await until(() => !at.proxy.pool.named("a").breaker.isOpen);
  assert.deepEqual(await health(), [200, "ok", null]);
  for (let index = 0; index < 4; index++) await (await at.open()).say(hi);
  assert.ok((at.calls().a ?? 0) > 0);
});

test("where every engine is unwell the call still gets the truth of one", async () => {
  await using at = await enginesAt(() => ({ refuse: { status: 500, message: "boom" } }), { a: {} });
  for (let index = 0; index < 5; index++) {
    const response = await (await at.open()).chat({ messages: hi });
    assert.equal(response.status, 502);
    assert.match(await response.text(), /boom/);
  }
});

test("what an engine refuses for good says nothing against it", async () => {
  await using at = await enginesAt(() => ({ refuse: { status: 400, message: "maximum context length is 10 tokens" } }), { a: {} });
  for (let index = 0; index < 5; index++) assert.equal((await (await at.open()).chat({ messages: hi })).status, 400);
  assert.equal(at.proxy.pool.named("a").breaker.isOpen, false);
});

test("routes send a call by model, agent and class; without one the engine that serves the model by name gets it", async () => {
  const routes = [
    { model: "judge-*", engine: "b", engine_model: "big" },
    { agent: "helper*", engine: ["c"] },
  ];
  await using at = await enginesAt(
    (name) => ({ text: name }),
    { a: { models_served: ["small"] }, b: { models_served: ["big"] }, c: { models_served: ["tiny"] } },
    { routes },
  );
  const client = await at.open();
  assert.equal((await client.say(hi, { model: "small" })).content, "a");
  assert.equal((await client.say(hi, { model: "big" })).content, "b");
  assert.equal((await client.say(hi, { model: "judge-1" })).content, "b");
  assert.equal(at.engines.b?.requests.at(-1)?.model, "big");
  const other = await at.open();
  const helped = await fetch(`${at.proxy.url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": other.key, "content-type": "application/json", "x-claude-code-agent-id": "helper-7" },
    body: JSON.stringify({ model: "small", max_tokens: 9, messages: hi }),
  });
  assert.match(await helped.text(), /"c"/);
});

test("a session keeps its engine while its auxiliary calls go to another by a rule, also one that is for other models", async () => {
  const routes = [{ agent: "helper*", engine: "judge" }];
  await using at = await enginesAt((name) => ({ text: name }), { a: {}, b: {}, judge: { models: ["judge-*"] } }, { routes });
  const client = await at.open();
  const home = (await client.say(hi)).content;
  assert.notEqual(home, "judge", "it is for its own models");
  assert.equal((await (await at.open()).say(hi, { model: "judge-2" })).content, "judge");
  const helped = await fetch(`${at.proxy.url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": client.key, "content-type": "application/json", "x-claude-code-agent-id": "helper-7" },
    body: JSON.stringify({ model: "small", max_tokens: 9, messages: hi }),
  });
  assert.match(await helped.text(), /"judge"/);
  // The other engine has been idle for longer, and would be taken if the session had no home.
  assert.equal((await client.say([{ role: "user", content: "next" }])).content, home);
});

test("a model name with a step goes to the engines at that step, and to a LoRA adapter of that name", async () => {
  await using at = await enginesAt((name) => ({ text: name }), {
    a: { policy: { version: "v7", step: 7 } },
    b: { policy: { version: "v8", step: 8 }, models_served: ["scripted", "math@3"] },
  });
  const client = await at.open();
  assert.equal((await client.say(hi, { model: "scripted@7" })).content, "a");
  assert.equal((await client.say(hi, { model: "any@v8" })).content, "b");
  assert.equal((await client.say([{ role: "user", content: "sum" }], { model: "math@3" })).content, "b");
  assert.deepEqual(
    at.engines.b?.requests.map((request) => request.model),
    ["scripted", "math@3"],
  );
  const refused = await client.chat({ messages: hi, model: "scripted@9" });
  assert.equal(refused.status, 404);
  assert.match(await refused.text(), /no engine is at \\"9\\".*v7, v8/);
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.policy.end),
    [
      { version: "v7", step: 7 },
      { version: "v8", step: 8 },
      { version: "math@3", step: 3 },
    ],
  );
});

test("tokens of two tokenizers are never one sequence", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {}, b: { shift: 1000 } });
  const client = await at.open({ purpose: "train" });
  await client.say(turns(1));
  const first = (await client.trajectory()).calls[0]?.engine_name as string;
  await at.control("POST", `/engines/${first}/drain`);
  await client.say(turns(3));
  const { calls, nodes, traces } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => [call.match, call.cause]),
    [
      ["root", null],
      ["diverged", "other_tokenizer"],
    ],
  );
  assert.notDeepEqual(calls[0]?.fingerprints, calls[1]?.fingerprints);
  assert.equal(nodes.filter((node) => node.parent_id === null).length, 2);
  assert.equal(traces.length, 2);
});

test("engines come, are replaced, drained and removed at run time, each with the truth about what stands in the way", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await enginesAt((name) => (name === "a" ? { text: "a", beforeEnd: hold.promise } : { text: name }), {
    a: {},
    b: {},
    c: {},
  });
  assert.equal((await at.control("DELETE", "/engines/b")).status, 200);
  assert.equal((await at.control("DELETE", "/engines/c")).status, 200);
  const client = await at.open();
  const running = client.say(hi);
  await until(() => at.calls().a === 1);
  const url = (name: string): string => at.engines[name]?.url ?? "";

  const busy = await at.control("DELETE", "/engines/a");
  assert.equal(busy.status, 409);
  assert.match(JSON.stringify(busy.body), /is at 1 calls/);
  assert.equal((await at.control("POST", "/engines", { name: "a", url: url("b") })).status, 409);
  assert.equal((await at.control("POST", "/engines", { name: "x", url: "http://127.0.0.1:1" })).status, 503);
  assert.match(
    JSON.stringify((await at.control("POST", "/engines", { name: "x", url: "nowhere" })).body),
    /url is .*nowhere.*: give an http/,
  );
  assert.match(
    JSON.stringify((await at.control("POST", "/engines", { name: "x", url: url("b"), kind: "nope" })).body),
    /There is no engine/,
  );

  const added = await at.control("POST", "/engines", { name: "b2", url: url("b"), policy: { version: "v1", step: 1 } });
  assert.equal(added.status, 201);
  const drained = await at.control("POST", "/engines/a/drain");
  assert.deepEqual([drained.body.draining, drained.body.drained], [true, false]);
  assert.equal((await (await at.open()).say(hi)).content, "b");
  assert.equal((await at.control("POST", "/engines", { name: "b2", url: url("c"), replace: true })).status, 201);
  assert.equal((await (await at.open()).say(hi)).content, "c");
  hold.resolve();
  assert.equal((await running).content, "a");
  assert.equal((await at.control("DELETE", "/engines/a")).status, 200);
  assert.deepEqual(
    ((await at.control("GET", "/engines")).body.engines as { name: string }[]).map((engine) => engine.name),
    ["b2"],
  );
  assert.equal((await at.control("DELETE", "/engines/b2")).status, 200);
  const refused = await (await at.open()).chat({ messages: hi });
  assert.equal(refused.status, 503);
  assert.match(await refused.text(), /there is no engine/);
});

test("an engine without token ids is refused for training and taken for the rest, where training sessions never go", async () => {
  await using plain = await enginesAt(() => ({ text: "plain", quirk: "no_ids" }), { p: {} });
  await using at = await enginesAt(() => ({ text: "a" }), { a: {} });
  const url = plain.engines.p?.url;
  const refused = await at.control("POST", "/engines", { name: "p", url });
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(refused.body), /engine_without_token_ids.*return_token_ids/);
  assert.equal((await at.control("POST", "/engines", { name: "p", url, purpose: "live" })).status, 201);
  for (let index = 0; index < 4; index++) assert.equal((await (await at.open({ purpose: "train" })).say(hi)).content, "a");
});

test("a forced removal answers what runs with a retryable error and keeps its partial ids", async () => {
  await using at = await enginesAt((name) => ({ text: name, ...(name === "a" ? { beforeEnd: new Promise(() => undefined) } : {}) }), {
    a: {},
  });
  const client = await at.open();
  const running = client.chat({ messages: hi });
  await until(async () => at.calls().a === 1);
  assert.equal((await at.control("DELETE", "/engines/a?force=true")).status, 200);
  const answer = await running;
  assert.equal(answer.status, 503);
  assert.equal(answer.headers.get("x-should-retry"), null);
  const finished = (await client.entries()).find((entry) => entry.type === "call_finished");
  assert.equal(finished?.error?.code, "engine_aborted");
});
