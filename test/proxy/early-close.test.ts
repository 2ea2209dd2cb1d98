/**
 * A harness that stops reading as soon as its first tool block is complete, on purpose, and works with that: what was
 * sampled, what was written and what was used are three facts, and the last is known from its next request or not at all.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Client, proxyAt } from "../fakes/proxy-at.ts";
import { encode } from "../fakes/scripted-engine.ts";

const block = "```shell\nls\n```\n";
const said = `I look.\n${block}and then I would say a lot more`;
const hi = [{ role: "user", content: "hi" }];

/** Reads a streamed chat answer up to the end of the first fenced block, leaves, and returns what it read until there. */
async function firstBlock(client: Client, messages: unknown[]): Promise<string> {
  const leave = new AbortController();
  const response = await client.chat({ messages, stream: true }, leave.signal);
  let wire = "";
  let text = "";
  for await (const chunk of response.body ?? []) {
    wire += Buffer.from(chunk).toString();
    text = [...wire.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)].map(([, json]) => JSON.parse(json ?? '""') as string).join("");
    if (text.includes(block)) break;
  }
  leave.abort();
  return text.slice(0, text.indexOf(block) + block.length);
}

test("the part that was used is known from the next request: the turn is partial, and nothing of it is trained", async () => {
  for (const relay of ["live", "settled"] as const) {
    const hold = Promise.withResolvers<void>();
    await using at = await proxyAt((_, index) =>
      index === 0 ? { text: said, ...(relay === "live" && { beforeEnd: hold.promise }) } : { text: "done" },
    );
    const client = await at.open({ purpose: "train", relay });
    const used = await firstBlock(client, hi);
    hold.resolve();
    while (!(await client.entries()).some((entry) => entry.type === "answered")) await new Promise((resolve) => setTimeout(resolve, 5));
    await client.say([...hi, { role: "assistant", content: used.trim() }, { role: "user", content: "a.txt" }]);
    const { calls, fidelity } = await client.trajectory();
    assert.equal(calls.length, 2, relay);
    const [cut, next] = calls;
    const sampled = (await client.entries()).find((entry) => entry.type === "call_finished")?.sampled_ids;
    assert.equal(sampled?.length, encode(said).length + 1, "all that was sampled is kept");
    assert.deepEqual([next?.parent_call_id, next?.match], [cut?.call_id, "diverged"], relay);
    assert.deepEqual([cut?.outcome, next?.cause, next?.restored[0]?.differences], ["partial", "edited", ["text_cut"]], relay);
    assert.equal(fidelity.excluded.undelivered, encode(said).length + 1, "what the policy did not choose to say is nobody's action");
    assert.equal(fidelity.trainable_tokens, encode("done").length + 1);
  }
});

test("where no request follows nobody knows what was used", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: said, beforeEnd: hold.promise }));
  const client = await at.open({ purpose: "train", relay: "live" });
  await firstBlock(client, hi);
  hold.resolve();
  while (!(await client.entries()).some((entry) => entry.type === "call_finished")) await new Promise((resolve) => setTimeout(resolve, 5));
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual([calls.length, calls[0]?.outcome], [1, "undelivered"]);
  assert.equal(fidelity.trainable_tokens, 0);
  assert.equal(fidelity.excluded.undelivered, encode(said).length + 1);
});
