import assert from "node:assert/strict";
import { test } from "node:test";
import type { Budgets } from "../../../base/schema/session-spec.ts";
import { rebuildSession } from "../../../proxy/index.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];
const more = [{ role: "user", content: "more" }];

/** Each is spent by one call when it is whole, the last one while it runs. */
const spentByOneCall: Budgets[] = [
  { max_turns: 1 },
  { max_prompt_tokens: 1 },
  { max_sampled_tokens: "ok".length + 1 },
  { max_wall_seconds: 2 },
  { max_concurrent_calls: 1 },
];

for (const budgets of spentByOneCall)
  test(`a spent ${Object.keys(budgets)} refuses the next call in a form that ends each harness, and is the session's stop reason`, async () => {
    const hold = Promise.withResolvers<void>();
    const isHeld = budgets.max_concurrent_calls !== undefined;
    await using at = await proxyAt(() => ({ text: "ok", ...(isHeld && { beforeEnd: hold.promise }) }));
    const client = await at.open({ purpose: "train", budgets });
    const first = client.say(hi);
    if (isHeld) while (at.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    else await first;
    await new Promise((resolve) => setTimeout(resolve, 1_000 * (budgets.max_wall_seconds ?? 0)));
    for (const [path, body, status] of [
      ["/v1/chat/completions", { model: "m", messages: more }, 400],
      ["/v1/responses", { model: "m", input: "more" }, 400],
      ["/v1/messages", { model: "m", max_tokens: 9, messages: more }, 403],
    ] as const) {
      const refused = await client.post(path, { ...body, stream: true });
      assert.deepEqual([refused.status, refused.headers.get("x-should-retry")], [status, "false"], path);
      const said = await refused.text();
      assert.match(said, new RegExp(`has spent its budget ${Object.keys(budgets)}: [\\d.]+ of ${Object.values(budgets)}`));
      // An id may hold a "500", which Pi takes for a server's error and asks again; "out of budget" it takes for the end.
      assert.match(said, /out of budget/);
      assert.doesNotMatch(said, new RegExp(client.sessionId));
    }
    assert.equal(at.proxy.session(client.sessionId).state.stopReason, "budget_spent");
    hold.resolve();
    await first;
    assert.equal(at.engine.requests.length, 1);
    assert.equal((await client.trajectory()).calls.length, 1);
  });

test("a repetition is charged to no budget but time: a failing engine does not keep a patient harness for ever", async () => {
  await using at = await proxyAt(() => ({ refuse: { status: 500, message: "boom" } }));
  const patient = await at.open({ budgets: { max_turns: 1, max_prompt_tokens: 1 } });
  for (let time = 0; time < 3; time++) assert.equal(await statusOf(patient), 502);
  const timed = await at.open({ budgets: { max_wall_seconds: 2 } });
  assert.equal(await statusOf(timed), 502);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert.equal(await statusOf(timed), 400);
});

test("a question is charged once, with the answer that it got, also by a proxy that was started again", async () => {
  await using at = await proxyAt((_, index) => (index === 0 ? { text: "12345", cutAfter: 4 } : { text: "12345" }));
  const client = await at.open({ budgets: { max_sampled_tokens: 12 } });
  assert.equal(await statusOf(client), 502);
  const session = at.proxy.session(client.sessionId);
  assert.deepEqual([session.spent.turns, session.spent.sampledTokens], [1, 0]);
  assert.equal(await statusOf(client), 200);
  assert.equal((await client.say(more)).content, "12345");
  await client.settled();
  const rebuilt = await rebuildSession(at.proxy.sessions.store, client.sessionId);
  assert.deepEqual(rebuilt?.spent, session.spent);
  assert.deepEqual([session.spent.turns, session.spent.sampledTokens], [2, 6 + 6]);
  assert.equal((await client.chat({ messages: [...more, ...hi] })).status, 400);
});

test("an engine that fails every first try makes no budget of tokens last longer", async () => {
  await using at = await proxyAt((_, index) => (index % 2 === 0 ? { text: "12345", cutAfter: 0 } : { text: "12345" }));
  const client = await at.open({ budgets: { max_sampled_tokens: 12 } });
  for (const messages of [hi, more]) {
    assert.equal((await client.chat({ messages })).status, 502);
    assert.equal((await client.chat({ messages })).status, 200);
  }
  assert.match(await (await client.chat({ messages: [...more, ...hi] })).text(), /max_sampled_tokens: 12 of 12/);
});

test("repetitions take places of max_concurrent_calls like any other call", { timeout: 20_000 }, async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt((_, index) =>
    index < 2 ? { refuse: { status: 500, message: "boom" } } : { text: "ok", beforeEnd: hold.promise },
  );
  const client = await at.open({ budgets: { max_concurrent_calls: 1 } });
  for (const messages of [hi, more]) assert.equal((await client.chat({ messages })).status, 502);
  const first = client.say(hi);
  while (at.engine.requests.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.match(await (await client.chat({ messages: more })).text(), /has spent its budget max_concurrent_calls: 1 of 1/);
  hold.resolve();
  await first;
});

test("a session that goes on after it had too many calls at once was not ended by that", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: "ok", beforeEnd: hold.promise }));
  const client = await at.open({ budgets: { max_concurrent_calls: 1, max_turns: 2 } });
  const session = at.proxy.session(client.sessionId);
  const first = client.say(hi);
  while (at.engine.requests.length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal((await client.chat({ messages: more })).status, 400);
  assert.deepEqual([session.state.stopReason, session.state.endedBy], ["budget_spent", "max_concurrent_calls"]);
  hold.resolve();
  await first;
  await client.say(more);
  assert.deepEqual([session.state.stopReason, session.state.endedBy], [null, null]);
  assert.equal((await client.chat({ messages: [...more, ...hi] })).status, 400);
  assert.deepEqual([session.state.stopReason, session.state.endedBy], ["budget_spent", "max_turns"]);
});

const statusOf = async (client: Client): Promise<number> => (await client.chat({ messages: hi })).status;
