/**
 * A harness that stops reading as soon as its first tool block is complete, on purpose, and works with that: what was
 * sampled, what was written and what was used are three facts, and the last is known from its next request or not at all.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { encode } from "../../fakes/engines/scripted-engine.ts";
import { until } from "../../fakes/machine/until.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

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
  for (const relay of ["live", "buffered"] as const) {
    const hold = Promise.withResolvers<void>();
    await using at = await proxyAt((_, index) =>
      index === 0 ? { text: said, ...(relay === "live" && { beforeEnd: hold.promise }) } : { text: "done" },
    );
    const client = await at.open({ purpose: "train", relay });
    const used = await firstBlock(client, hi);
    // Its leaving was seen: only then the engine goes on.
    await client.logged("answered");
    hold.resolve();
    await client.logged("call_finished");
    await client.say([...hi, { role: "assistant", content: used.trim() }, { role: "user", content: "a.txt" }]);
    const { calls, fidelity } = await client.trajectory();
    assert.equal(calls.length, 2, relay);
    const [cut, next] = calls;
    const sampled = (await client.entries()).find((entry) => entry.type === "call_finished")?.sampled_ids;
    assert.equal(sampled?.length, encode(said).length + 1, "all that was sampled is kept");
    assert.deepEqual([next?.parent_call_id, next?.match], [cut?.call_id, "diverged"], relay);
    assert.deepEqual([cut?.outcome, next?.cause, next?.restored[0]?.differences], ["partial", "edited", ["text_cut"]], relay);
    assert.equal(fidelity.excluded.undelivered, encode(said).length + 1, "what the policy did not choose to say is no action");
    assert.equal(fidelity.trainable_tokens, encode("done").length + 1);
  }
});

test("the same where a block is a call: of two, the one that was used is the next request's", async () => {
  for (const relay of ["live", "buffered"] as const) {
    const hold = Promise.withResolvers<void>();
    const tool_calls = ["ls", "pwd"].map((command) => ({ name: "bash", arguments: `{"command": "${command}"}` }));
    const twoCalls = { text: "I look.", tool_calls, ...(relay === "live" && { beforeEnd: hold.promise }) };
    await using at = await proxyAt((_, index) => (index === 0 ? twoCalls : { text: "done" }));
    const client = await at.open({ purpose: "train", relay });
    const sdk = new Anthropic({ baseURL: at.proxy.url, apiKey: client.key });
    const body = { model: "m", max_tokens: 99, tools: [{ name: "bash", input_schema: { type: "object" as const } }] };
    const used: Anthropic.ToolUseBlock[] = [];
    const asked = { role: "user" as const, content: "hi" };
    for await (const event of await sdk.messages.create({ ...body, messages: [asked], stream: true })) {
      if (event.type === "content_block_start" && event.content_block.type === "tool_use") used.push(event.content_block);
      if (event.type === "content_block_stop" && used.length > 0) break;
    }
    await client.logged("answered");
    hold.resolve();
    await client.logged("call_finished");
    const calls = used.map((block) => ({ ...block, input: { command: "ls" } }));
    const results = used.map(({ id }) => ({ type: "tool_result" as const, tool_use_id: id, content: "a.txt" }));
    const turn = { role: "assistant" as const, content: [{ type: "text" as const, text: "I look." }, ...calls] };
    await sdk.messages.create({ ...body, messages: [asked, turn, { role: "user", content: results }] });
    const trajectory = await client.trajectory();
    const [cut, next] = trajectory.calls;
    assert.deepEqual([next?.parent_call_id, next?.match, next?.cause], [cut?.call_id, "diverged", "tool_calls_changed"], relay);
    assert.deepEqual([cut?.outcome, next?.restored[0]?.differences], ["partial", ["tool_calls_cut"]], relay);
    assert.equal(trajectory.fidelity.excluded.undelivered, cut?.sampled_length);
    assert.equal(trajectory.fidelity.trainable_tokens, encode("done").length + 1);
  }
});

test("where no request follows, what was used is unknown", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: said, beforeEnd: hold.promise }));
  const client = await at.open({ purpose: "train", relay: "live" });
  await firstBlock(client, hi);
  await client.logged("answered");
  hold.resolve();
  await client.logged("call_finished");
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual([calls.length, calls[0]?.outcome], [1, "undelivered"]);
  assert.equal(fidelity.trainable_tokens, 0);
  assert.equal(fidelity.excluded.undelivered, encode(said).length + 1);
});

test("a result that came before its call was whole has the engine's id from the next turn on", async () => {
  const hold = Promise.withResolvers<void>();
  const calls = ["engine-0", "engine-1"].map((id) => ({ id, name: "ls", arguments: "{}" }));
  await using at = await proxyAt((_, index) => (index === 0 ? { tool_calls: calls, beforeEnd: hold.promise } : { text: "End." }));
  const client = await at.open({ purpose: "train", relay: "live" });
  const leave = new AbortController();
  const { body } = await client.chat({ messages: hi, stream: true }, leave.signal);
  let heard = "";
  for await (const chunk of body ?? []) {
    heard += Buffer.from(chunk).toString();
    if (/call\w{20}t0/.test(heard)) break;
  }
  leave.abort();
  const id = /call\w{20}t0/.exec(heard)?.[0];
  const used = { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name: "ls", arguments: "{}" } }] };
  const messages = [...hi, used, { role: "tool", tool_call_id: id, content: "a.txt" }];
  const said = await client.say(messages);
  hold.resolve();
  await until(async () => (await client.entries()).filter(({ type }) => type === "call_finished").length === 2);
  await client.say([...messages, said, { role: "user", content: "Thanks." }]);
  const sent = at.engine.requests.at(-1)?.messages as { tool_calls?: { id: string }[]; tool_call_id?: string }[];
  assert.deepEqual([sent[1]?.tool_calls?.[0]?.id, sent[2]?.tool_call_id], ["engine-0", "engine-0"]);
});

test("a part of a turn that a command sends keeps nothing of it out of training, for the harness goes on with all of it", async () => {
  await using at = await proxyAt((_, index) => ({ text: index === 0 ? "One two three." : "ok" }));
  const client = await at.open({ purpose: "train", sandboxed: true });
  const asked = { role: "user", content: "Count" };
  const goOn = (content: string) => client.say([asked, { role: "assistant", content }, { role: "user", content: "And?" }]);
  await client.say([asked]);
  await goOn("One two");
  assert.equal((await client.trajectory()).calls[0]?.outcome, "partial");
  await goOn("One two three.");
  assert.equal((await client.trajectory()).calls[0]?.outcome, "delivered");
});
