/** Budgets that are spent while a call is sampled. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Budgets } from "../../../base/schema/session-spec.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];
const never = new Promise(() => undefined);

const spentMidway: Budgets[] = [{ max_sampled_tokens: 5 }, { max_wall_seconds: 2 }];

for (const budgets of spentMidway)
  for (const relay of ["buffered", "live"] as const)
    for (const stream of [true, false])
      test(`${relay}${stream ? ", streamed" : ""}: ${Object.keys(budgets)} ends the call that spends it, with what was sampled kept`, async () => {
        await using at = await proxyAt(() => ({ text: "a long answer", beforeEnd: never }));
        const client = await at.open({ purpose: "train", relay, budgets });
        const response = await client.chat({ messages: hi, stream });
        const said = await response.text();
        assert.match(said, new RegExp(`out of budget: this session has spent its budget ${Object.keys(budgets)}`));
        assert.equal(response.status, stream ? 200 : 400);
        while (at.engine.aborted === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        const finished = (await client.entries()).find((entry) => entry.type === "call_finished");
        assert.equal(finished?.error?.code, "budget_spent");
        assert.equal(finished?.sampled_ids?.length, "a long answer".length + 1);
        assert.equal(at.proxy.session(client.sessionId).state.stopReason, "budget_spent");
        const again = await client.chat({ messages: hi });
        assert.deepEqual([again.status, again.headers.get("x-should-retry")], [400, "false"], "to ask again is to ask for more");
        assert.equal(at.engine.requests.length, 1);
        const { calls, fidelity } = await client.trajectory();
        assert.deepEqual([calls[0]?.outcome, fidelity.trainable_tokens], ["failed", 0]);
        assert.equal(at.proxy.pool.slots[0]?.breaker.isOpen, false);
        assert.deepEqual(at.unseen, []);
      });

test("calls that run at the same time spend one budget together, and all of them end", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: "12345", beforeEnd: hold.promise }));
  const client = await at.open({ budgets: { max_sampled_tokens: 11 } });
  const first = client.chat({ messages: hi });
  while (at.engine.requests.length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
  const second = client.chat({ messages: [{ role: "user", content: "another" }] });
  assert.equal((await second).status, 400);
  hold.resolve();
  assert.equal((await first).status, 200, "of the two the one that asked for more is cut");
});

test("a call that takes the last token of the budget is whole", async () => {
  await using at = await proxyAt(() => ({ text: "12345" }));
  const client = await at.open({ budgets: { max_sampled_tokens: 6, max_wall_seconds: 60 } });
  assert.equal((await client.say(hi)).content, "12345");
  assert.equal((await client.chat({ messages: hi })).status, 400);
});

test("the repetition of a call that the engine failed is let through and not cut", async () => {
  await using at = await proxyAt((_, index) => (index === 0 ? { text: "12345", cutAfter: 4 } : { text: "12345" }));
  const client = await at.open({ budgets: { max_sampled_tokens: 4 } });
  assert.equal((await client.chat({ messages: hi })).status, 502);
  assert.equal((await client.say(hi)).content, "12345");
});
