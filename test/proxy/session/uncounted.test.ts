/** Calls whose sampled tokens are not counted by any side: which they are, and which are not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];

/** What the engine does, what of it is unknown, and how many sampled tokens are known. */
const cases: [string, ScriptedReply, string | null, number | null][] = [
  ["a whole answer", { text: "whole" }, null, 6],
  ["a whole answer without ids whose tokens were counted", { text: "whole", quirk: "no_ids" }, null, null],
  ["an answer that breaks off", { text: "whole", cutAfter: 3 }, "broken_off", 3],
  ["an answer that breaks off before its first token", { text: "whole", cutAfter: 0 }, "broken_off", 0],
  ["an answer that the engine aborts and counts", { text: "whole", quirk: "abort" }, null, 6],
  ["a failure that vLLM answers instead of a stream", { refuse: { status: 500, message: "boom" } }, null, null],
  ["a failure of a gateway, which may lie behind a sample", { refuse: { status: 502, message: "boom" } }, "broken_off", null],
  ["a refusal of the request", { refuse: { status: 400, message: "no" } }, null, null],
  ["a full engine", { refuse: { status: 429, message: "full", retryAfter: "60" } }, null, null],
];

for (const [what, reply, uncounted, known] of cases)
  test(`${what}: ${uncounted === null ? "nothing is unknown" : "an unknown number was sampled"}`, async () => {
    await using at = await proxyAt(() => reply);
    const client = await at.open();
    await (await client.chat({ messages: hi })).text();
    const { calls, fidelity } = await client.trajectory();
    assert.deepEqual([calls[0]?.uncounted, calls[0]?.sampled_length], [uncounted, known]);
    assert.deepEqual(fidelity.uncounted, uncounted === null ? {} : { [uncounted]: 1 });
  });

test("an answer of an engine that is gone breaks off, and one that never came to an engine samples nothing", async () => {
  await using at = await proxyAt(() => ({ text: "whole", beforeEnd: new Promise(() => undefined) }));
  const client = await at.open();
  const answering = client.chat({ messages: hi }).then((response) => response.text());
  await client.sampled(1);
  await at.engine[Symbol.asyncDispose]();
  await answering;
  await (await client.chat({ messages: [{ role: "user", content: "still there?" }] })).text();
  assert.deepEqual(
    (await client.trajectory()).calls.map(({ outcome, uncounted }) => [outcome, uncounted]),
    [
      ["failed", "broken_off"],
      ["failed", null],
    ],
  );
});

test("a text of an engine that gives neither ids nor a count is not counted", async () => {
  await using at = await proxyAt(() => ({ text: "whole", quirk: "no_ids_no_usage" }));
  const client = await at.open();
  await client.say(hi);
  assert.deepEqual((await client.trajectory()).fidelity.uncounted, { not_counted: 1 });
});
