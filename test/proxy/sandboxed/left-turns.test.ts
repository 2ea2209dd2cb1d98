/** A sandboxed agent takes no turn out of training by leaving before its answer, or by using a part of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../fakes/machine/until.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const user = { role: "user", content: "work" };
const said = "All that was said, and none of it good.";

/** A sandboxed session whose first answer is left by its client before it comes, and is whole afterwards. */
async function leftAt(at: Awaited<ReturnType<typeof proxyAt>>, hold: PromiseWithResolvers<void>, sandboxed = true): Promise<Client> {
  const client = await at.open({ sandboxed, purpose: "train" });
  const leave = new AbortController();
  const asked = client.chat({ messages: [user], stream: true }, leave.signal).catch(() => undefined);
  await until(() => at.engine.requests.length === 1);
  leave.abort();
  await asked;
  await client.logged("answered");
  hold.resolve();
  await client.logged("call_finished");
  return client;
}

function proxyWith(hold: PromiseWithResolvers<void>) {
  return proxyAt((_, index) => (index === 0 ? { text: said, beforeEnd: hold.promise } : { text: "next" }));
}

test("a turn whose client hangs up on it is sampled to its end and trained", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyWith(hold);
  const { calls, fidelity } = await (await leftAt(at, hold)).trajectory();
  assert.equal(at.engine.aborted, 0);
  assert.deepEqual([calls[0]?.outcome, calls[0]?.error], ["undelivered", null]);
  assert.deepEqual([fidelity.sampled_tokens > 0, fidelity.trainable_tokens, fidelity.excluded], [true, fidelity.sampled_tokens, {}]);
});

for (const [what, content] of [
  ["another one", "Something better."],
  ["a part of it", said.slice(0, 9)],
] as const)
  test(`a turn that was left and comes back as ${what} is trained as it was sampled`, async () => {
    const hold = Promise.withResolvers<void>();
    await using at = await proxyWith(hold);
    const client = await leftAt(at, hold);
    await client.say([user, { role: "assistant", content }, { role: "user", content: "go on" }]);
    const { fidelity } = await client.trajectory();
    assert.deepEqual([fidelity.calls, fidelity.trainable_tokens, fidelity.excluded], [2, fidelity.sampled_tokens, {}]);
  });

test("a turn that arrived, and of which a command sends a part back, is trained", async () => {
  await using at = await proxyAt((_, index) =>
    index === 0
      ? {
          text: "First.",
          tool_calls: [
            { name: "bash", arguments: "{}" },
            { name: "bash", arguments: '{"a":1}' },
          ],
        }
      : { text: "next" },
  );
  const client = await at.open({ sandboxed: true, purpose: "train" });
  const turn = await client.say([user]);
  const [first] = turn.tool_calls as { id: string }[];
  await client.say([user, { ...turn, tool_calls: [first] }, { role: "tool", tool_call_id: first?.id, content: "done" }]);
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual([calls[0]?.outcome, fidelity.trainable_tokens, fidelity.excluded], ["partial", fidelity.sampled_tokens, {}]);
});

test("in a person's own session, what was not read is not trained", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyWith(hold);
  const { fidelity } = await (await leftAt(at, hold, false)).trajectory();
  assert.deepEqual([fidelity.trainable_tokens, Object.keys(fidelity.excluded)], [0, ["undelivered"]]);
});

test("a seed of the agent's reaches the engine in no training session of a sandbox, unless the operator allows it", async () => {
  await using at = await proxyAt(() => ({ text: "hello" }));
  const seeds: [Parameters<typeof at.open>[0], number | undefined][] = [
    [{ sandboxed: true, purpose: "train" }, undefined],
    [{ sandboxed: true, purpose: "train", allow_fields: ["seed"] }, 7],
    [{ sandboxed: true, purpose: "train", sampling: { seed: 3 } }, 3],
    [{ sandboxed: true, purpose: "eval" }, 7],
    [{ purpose: "train" }, 7],
  ];
  for (const [spec, seed] of seeds) {
    const client = await at.open(spec);
    await client.say([user], { seed: 7 });
    assert.equal(at.engine.requests.at(-1)?.seed, seed, JSON.stringify(spec));
    const begun = (await client.entries()).find((entry) => entry.type === "call_begun");
    assert.deepEqual([begun?.requested_sampling.seed, begun?.effective_sampling.seed], [7, seed]);
  }
});
