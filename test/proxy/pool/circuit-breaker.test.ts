/** What opens an engine's breaker is the engine's own state: no client's requests do, however many of them fail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptedReply, WireRequest } from "../../fakes/engines/scripted-engine.ts";
import { until } from "../../fakes/machine/until.ts";
import { type EnginesAt, enginesAt } from "../../fakes/proxies/engines-at.ts";
import type { Client } from "../../fakes/proxies/proxy-at.ts";

const turns = (count: number, text = "turn"): { role: string; content: string }[] =>
  Array.from({ length: count }, (_, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content: index % 2 === 0 ? text : "ok" }));

/** An engine that is well and cannot stand one request, as a huge body or an image that is nowhere. */
const poisoned = (name: string, request: WireRequest): ScriptedReply =>
  JSON.stringify(request.messages).includes("poison") ? { refuse: { status: 500, message: "boom" } } : { text: name };

/** Sessions that have settled at the engine of this name. */
async function settledAt(at: EnginesAt, name: string, count: number): Promise<Client[]> {
  const found: Client[] = [];
  while (found.length < count) {
    const client = await at.open();
    if ((await client.say(turns(1))).content === name) found.push(client);
  }
  return found;
}

for (const attackers of [1, 2])
  test(`a sibling stays at its engine while ${attackers} hostile session${attackers > 1 ? "s have" : " has"} nothing but failures there`, async () => {
    await using at = await enginesAt(poisoned, { a: {}, b: {} });
    const [sibling, ...hostile] = await settledAt(at, "a", 1 + attackers);
    for (let round = 0; round < 3; round++) {
      for (const client of hostile)
        for (let index = 0; index < 3; index++)
          assert.equal((await client.chat({ messages: turns(1, `poison ${round} ${index}`) })).status, 502);
      assert.equal((await sibling?.say(turns(3 + 2 * round)))?.content, "a", `round ${round}`);
    }
    assert.equal((await at.control("GET", "/health")).body.status, "ok");
    assert.deepEqual(at.told, []);
  });

test("an engine that answers its health check and samples for no client is left alone, also with one session", async () => {
  let isWedged = false;
  await using at = await enginesAt((name) => (name === "a" && isWedged ? { refuse: { status: 500, message: "wedged" } } : { text: name }), {
    a: {},
    b: {},
  });
  const [client] = await settledAt(at, "a", 1);
  isWedged = true;
  for (let round = 0; round < 3; round++) assert.equal((await client?.chat({ messages: turns(1, `${round}`) }))?.status, 502);
  await until(() => at.proxy.pool.named("a").breaker.isOpen);
  assert.equal((await client?.say(turns(1, "next")))?.content, "b");
  isWedged = false;
  await until(() => !at.proxy.pool.named("a").breaker.isOpen);
});

test("an engine that is gone is left alone with one session", async () => {
  await using at = await enginesAt((name) => ({ text: name }), { a: {}, b: {} });
  const [client] = await settledAt(at, "a", 1);
  await at.engines.a?.[Symbol.asyncDispose]();
  for (let round = 0; round < 3; round++) assert.equal((await client?.say(turns(1, `${round}`)))?.content, "b");
  const other = await at.open();
  for (let round = 0; round < 3; round++) assert.equal((await other.say(turns(1, `${round}`))).content, "b");
});
