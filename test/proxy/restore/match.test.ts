import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogLine } from "../../../base/schema/session-log.ts";
import { until } from "../../fakes/machine/until.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

/** Until our side has seen the client's close: before that the bytes are handed to a client that left. */
async function seenLeaving(client: Client, clients = 1): Promise<void> {
  const isCut = (entry: LogLine) => entry.type === "answered" && entry.delivery === "cut";
  await until(async () => (await client.entries()).filter(isCut).length >= clients);
}

const hi = [{ role: "user", content: "hi" }];

test("a client that left while the engine sampled and came back gets the same sample", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: "once", beforeEnd: hold.promise }));
  const client = await at.open({ purpose: "train", budgets: { max_turns: 1 } });
  const gone = new AbortController();
  const first = client.chat({ messages: hi, stream: true }, gone.signal).then((response) => response.text());
  while (at.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  gone.abort();
  await assert.rejects(first);
  const second = client.say(hi);
  await seenLeaving(client);
  hold.resolve();
  assert.equal((await second).content, "once");
  assert.equal(at.engine.requests.length, 1);
  const trajectory = await client.trajectory();
  assert.deepEqual(
    trajectory.calls.map((call) => call.outcome),
    ["delivered"],
  );
});

test("an answer that was never delivered is given again, in the form now asked for", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: "kept", beforeEnd: hold.promise }));
  const client = await at.open();
  const gone = new AbortController();
  const first = client.chat({ messages: hi }, gone.signal);
  while (at.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  gone.abort();
  await assert.rejects(first);
  await seenLeaving(client);
  hold.resolve();
  await client.logged("call_finished");
  const again = await client.chat({ messages: hi, stream: true, max_tokens: 99 });
  assert.match(await again.text(), /kept/);
  assert.equal(at.engine.requests.length, 1);
});

test("identical requests at the same time are samples of their own", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt((_, index) => ({ text: `sample ${index}`, beforeEnd: hold.promise }));
  const client = await at.open();
  const both = Promise.all([client.say(hi), client.say(hi)]);
  while (at.engine.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  hold.resolve();
  assert.deepEqual((await both).map((turn) => turn.content).sort(), ["sample 0", "sample 1"]);
  const { calls, fidelity } = await client.trajectory();
  assert.equal(calls.length, 2);
  assert.equal(fidelity.sampled_tokens, 2 * ("sample 0".length + 1));
});

test("the same request after a delivered answer is a new sample", async () => {
  await using at = await proxyAt((_, index) => ({ text: `sample ${index}` }));
  const client = await at.open();
  assert.equal((await client.say(hi)).content, "sample 0");
  assert.equal((await client.say(hi)).content, "sample 1");
});

test("a request that failed is tried anew, names the failed call, and is charged to no budget", async () => {
  await using at = await proxyAt((_, index) => (index === 0 ? { refuse: { status: 500, message: "boom" } } : { text: "ok" }));
  const client = await at.open({ budgets: { max_turns: 1 } });
  assert.equal((await client.chat({ messages: hi })).status, 502);
  assert.equal((await client.say(hi)).content, "ok");
  const begun = (await client.entries()).filter((entry) => entry.type === "call_begun");
  assert.equal(begun[1]!.retry_of, begun[0]!.call_id);
});

const grammar = { type: "json_schema", json_schema: { name: "verdict", schema: { type: "object" } } };
const others: Record<string, [string, Record<string, unknown>, string, Record<string, unknown>]> = {
  model: ["chat/completions", { messages: hi }, "chat/completions", { messages: hi, model: "other" }],
  "response format": ["chat/completions", { messages: hi }, "chat/completions", { messages: hi, response_format: grammar }],
  grammar: ["chat/completions", { messages: hi }, "chat/completions", { messages: hi, structured_outputs: { choice: ["yes", "no"] } }],
  "stop string": ["chat/completions", { messages: hi, stop: "END" }, "chat/completions", { messages: hi }],
  dialect: ["chat/completions", { messages: hi }, "responses", { input: "hi" }],
  "word on storing": ["responses", { input: "hi", store: false }, "responses", { input: "hi" }],
};

for (const [what, [path, body, otherPath, other]] of Object.entries(others))
  test(`an answer that its client missed is not given to a request with another ${what}`, async () => {
    const hold = Promise.withResolvers<void>();
    await using at = await proxyAt((_, index) => ({ text: `sample ${index}.`, beforeEnd: hold.promise }));
    const client = await at.open({ purpose: "eval" });
    const gone = new AbortController();
    const first = client.post(`/v1/${path}`, { model: "any", ...body }, gone.signal);
    await until(() => at.engine.requests.length === 1);
    gone.abort();
    await assert.rejects(first);
    await seenLeaving(client);
    hold.resolve();
    await client.logged("call_finished");
    const ask = async (where: string, asked: Record<string, unknown>) =>
      (await client.post(`/v1/${where}`, { model: "any", ...asked })).text();
    assert.match(await ask(otherPath, other), /sample 1\./);
    assert.match(await ask(path, body), /sample 0\./, "who asked comes back and gets it");
    const begun = (await client.entries()).filter((entry) => entry.type === "call_begun");
    assert.deepEqual(
      begun.map((entry) => entry.retry_of),
      [null, null],
    );
  });

test("a harness that goes to another model when one fails has tried again, and is charged once", async () => {
  await using at = await enginesAt((name) => (name === "big" ? { refuse: { status: 500, message: "boom" } } : { text: "ok" }), {
    big: { models_served: ["big"], models: ["big"] },
    small: { models_served: ["small"], models: ["small"] },
  });
  const client = await at.open({ budgets: { max_turns: 1 } });
  assert.equal((await client.chat({ model: "big", messages: hi })).status, 502);
  assert.equal((await client.say(hi, { model: "small" })).content, "ok");
  const begun = (await client.entries()).filter((entry) => entry.type === "call_begun");
  assert.deepEqual(
    begun.map((entry) => entry.retry_of),
    [null, begun[0]?.call_id],
  );
  assert.match(await (await client.chat({ model: "small", messages: hi })).text(), /max_turns/);
});

for (const relay of ["buffered", "live"] as const) {
  /** Two identical requests at once; `leave` breaks the connection of the first. */
  const twins = async (script: Parameters<typeof proxyAt>[0]) => {
    const at = await proxyAt(script);
    const client = await at.open({ purpose: "train", relay });
    const gone = new AbortController();
    const ask = (signal?: AbortSignal) => client.chat({ messages: hi, stream: true }, signal).then((response) => response.text());
    const first = ask(gone.signal);
    first.catch(() => undefined);
    while (at.engine.requests.length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = ask();
    while (at.engine.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    const leave = async () => {
      gone.abort();
      await assert.rejects(first);
    };
    return { at, client, second, leave, ask, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() };
  };

  test(`${relay}: of two identical calls at once the one whose client left is found again while the other goes on`, async () => {
    const holds = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await using both = await twins((_, index) => ({ text: `sample ${index}.`, beforeEnd: holds[index]?.promise }));
    await both.leave();
    await seenLeaving(both.client);
    const again = both.ask();
    for (const hold of holds) hold.resolve();
    assert.match(await again, /sample 0\./);
    assert.match(await both.second, /sample 1\./);
    assert.equal(both.at.engine.requests.length, 2);
    assert.deepEqual(
      (await both.client.trajectory()).calls.map((call) => call.outcome),
      ["delivered", "delivered"],
    );
  });

  test(`${relay}: an answer that its client missed is given again after a call that was alike was answered`, async () => {
    const holds = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await using both = await twins((_, index) => ({ text: `sample ${index}.`, beforeEnd: holds[index]?.promise }));
    await both.leave();
    await seenLeaving(both.client);
    for (const hold of holds) hold.resolve();
    assert.match(await both.second, /sample 1\./);
    assert.match(await both.ask(), /sample 0\./);
    assert.match(await both.ask(), /sample 2\./, "both are answered: this is a sample of its own");
    assert.equal(both.at.engine.requests.length, 3);
  });

  test(`${relay}: two clients that left and come back together get one sample each`, async () => {
    const hold = Promise.withResolvers<void>();
    await using at = await proxyAt((_, index) => ({ text: `sample ${index}.`, beforeEnd: hold.promise }));
    const client = await at.open({ relay });
    const gone = new AbortController();
    const ask = (signal?: AbortSignal) => client.chat({ messages: hi, stream: true }, signal).then((response) => response.text());
    const left = [ask(gone.signal), ask(gone.signal)];
    for (const one of left) one.catch(() => undefined);
    while (at.engine.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    gone.abort();
    await Promise.allSettled(left);
    await seenLeaving(client, 2);
    const back = [ask(), ask()];
    hold.resolve();
    const samples = (await Promise.all(back)).map((text) => /sample \d/.exec(text)?.[0]);
    assert.deepEqual(samples.sort(), ["sample 0", "sample 1"]);
    assert.equal(at.engine.requests.length, 2);
  });

  test(`${relay}: the retry of a call that failed names it, also after one that was alike was answered`, async () => {
    const holds = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await using both = await twins((_, index) =>
      index === 0 ? { refuse: { status: 500, message: "boom" }, before: holds[0]?.promise } : { text: `sample ${index}.` },
    );
    assert.match(await both.second, /sample 1\./);
    holds[0]?.resolve();
    await until(async () => (await both.client.entries()).some((entry) => entry.type === "answered" && entry.delivery === "error"));
    assert.match(await both.ask(), /sample 2\./);
    const begun = (await both.client.entries()).filter((entry) => entry.type === "call_begun");
    assert.deepEqual(
      begun.map((entry) => entry.retry_of),
      [null, null, begun[0]?.call_id],
    );
  });
}
