/** Clients that keep no history: what they refer to is the session's record. The vendor's own SDK asks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { HarnessProxy } from "../../../proxy/index.ts";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { type Client, type ProxyAt, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const tools: OpenAI.Responses.FunctionTool[] = [{ type: "function", name: "read", parameters: { type: "object" }, strict: false }];
const replies: ScriptedReply[] = [
  { reasoning: "hm", text: "First.", tool_calls: [{ id: "engine-7", name: "read", arguments: '{ "path":  "é" }' }] },
  { text: "Second." },
  { text: "Third." },
];
const sdk = (at: ProxyAt, client: Client) => new OpenAI({ baseURL: `${at.proxy.url}/v1`, apiKey: client.key, maxRetries: 0 });
const outputOf = (response: OpenAI.Responses.Response) => {
  const call = response.output.find((item) => item.type === "function_call");
  return { type: "function_call_output" as const, call_id: call?.call_id ?? "", output: "a file" };
};

test("a response is gone on from by its id, token for token, and instructions are said anew", async () => {
  await using at = await proxyAt((_, index) => replies[index] ?? {});
  const client = await at.open({ purpose: "train" });
  const openai = sdk(at, client);
  const first = await openai.responses.create({ model: "m", instructions: "Be brief.", input: "Look", tools });
  const second = await openai.responses.create({ model: "m", previous_response_id: first.id, input: [outputOf(first)], tools });
  assert.equal(second.previous_response_id, first.id);
  const third = await openai.responses.create({
    model: "m",
    previous_response_id: second.id,
    instructions: "Be kind.",
    input: "More",
    tools,
    stream: true,
  });
  for await (const event of third) assert.notEqual(event.type, "response.failed");
  const roles = at.engine.requests.map((request) => request.messages.map((message) => message.role));
  assert.deepEqual(roles, [
    ["system", "user"],
    ["user", "assistant", "tool"],
    ["system", "user", "assistant", "tool", "assistant", "user"],
  ]);
  const [, assistant, result] = at.engine.requests[1]?.messages ?? [];
  assert.deepEqual(assistant?.tool_calls?.[0]?.function, { name: "read", arguments: '{ "path":  "é" }' });
  assert.equal((result as { tool_call_id?: string }).tool_call_id, "engine-7");
  assert.equal(at.engine.requests[2]?.messages[0]?.content, "Be kind.");
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => calls.findIndex((other) => other.call_id === call.parent_call_id)),
    [-1, 0, 1],
  );
  assert.deepEqual(
    calls[2]?.restored.map((one) => `${one.message_index} ${one.evidence} ${one.status}`),
    ["2 reference identical", "4 reference identical"],
  );
});

test("with the same instructions the edge is exact", async () => {
  await using at = await proxyAt((_, index) => replies[index] ?? {});
  const client = await at.open({ purpose: "train" });
  const openai = sdk(at, client);
  const shared = { model: "m", instructions: "Be brief.", tools };
  const first = await openai.responses.create({ ...shared, input: "Look" });
  await openai.responses.create({ ...shared, previous_response_id: first.id, input: [outputOf(first)] });
  assert.deepEqual(
    (await client.trajectory()).calls.map((call) => call.match),
    ["root", "exact"],
  );
});

test("what was not kept is a 404 that names it, and no call", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const other = await at.open();
  const openai = sdk(at, client);
  const kept = await openai.responses.create({ model: "m", input: "Hi" });
  const unkept = await openai.responses.create({ model: "m", input: "Hi", store: false });
  const foreign = await sdk(at, other).responses.create({ model: "m", input: "Hi" });
  await openai.responses.delete(kept.id);
  for (const id of ["resp_1", "", unkept.id, foreign.id, kept.id]) {
    await assert.rejects(openai.responses.create({ model: "m", previous_response_id: id, input: "Hi" }), (error: unknown) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, "previous_response_not_found");
      assert.equal(error.param, "previous_response_id");
      assert.ok(error.message.includes(`'${id}'`), error.message);
      return true;
    });
    if (id !== "") await assert.rejects(openai.responses.retrieve(id), { status: 404, param: "response_id" });
  }
  await assert.rejects(openai.responses.create({ model: "m", conversation: "conv_none", input: "Hi" }), {
    status: 404,
    param: "conversation",
  });
  const item = { type: "item_reference" as const, id: `msg_${"call".padEnd(24, "0")}i0` };
  await assert.rejects(openai.responses.create({ model: "m", input: [item] }), { status: 404, param: "input[0]" });
  assert.equal((await client.trajectory()).calls.length, 2);
});

test("a response is read again as it was given, listed, and cannot be cancelled any more", async () => {
  await using at = await proxyAt((_, index) => replies[index] ?? {});
  const client = await at.open();
  const openai = sdk(at, client);
  const first = await openai.responses.create({ model: "m", instructions: "Be brief.", input: "Look", tools });
  const second = await openai.responses.create({ model: "m", previous_response_id: first.id, input: [outputOf(first)], tools });
  assert.deepEqual(JSON.parse(JSON.stringify(await openai.responses.retrieve(first.id))), JSON.parse(JSON.stringify(first)));
  const items: OpenAI.Responses.ResponseItem[] = [];
  for await (const one of openai.responses.inputItems.list(second.id, { order: "asc", limit: 2 })) items.push(one);
  assert.deepEqual(
    items.map((one) => one.type),
    ["message", "reasoning", "message", "function_call", "function_call_output"],
  );
  const [call, result] = items.slice(-2) as unknown as [{ call_id: string; arguments: string }, { call_id: string }];
  assert.equal(call.arguments, '{ "path":  "é" }');
  assert.equal(result.call_id, call.call_id, "the ids are the harness's, not the engine's");
  assert.equal(result.call_id, outputOf(first).call_id);
  const newest = await openai.responses.inputItems.list(second.id, { limit: 1 });
  assert.deepEqual([newest.data[0]?.type, newest.has_more], ["function_call_output", true]);
  await assert.rejects(openai.responses.cancel(first.id), { status: 400 });
  assert.equal((await client.trajectory()).calls.length, 2);
});

test("a conversation gathers what is said in it, and begins with its items", async () => {
  await using at = await proxyAt((_, index) => replies[index + 1] ?? {});
  const client = await at.open();
  const openai = sdk(at, client);
  const conversation = await openai.conversations.create({
    items: [{ type: "message", role: "user", content: "I am Ann." }],
    metadata: { topic: "names" },
  });
  const first = await openai.responses.create({ model: "m", conversation: conversation.id, input: "Who am I?" });
  assert.equal(first.conversation?.id, conversation.id);
  await openai.responses.create({ model: "m", conversation: { id: conversation.id }, input: "Again?" });
  assert.deepEqual(
    at.engine.requests[1]?.messages.map((message) => `${message.role}: ${message.content as string}`),
    ["user: I am Ann.", "user: Who am I?", "assistant: Second.", "user: Again?"],
  );
  const found = await openai.conversations.retrieve(conversation.id);
  assert.deepEqual(found.metadata, { topic: "names" });
  const items: string[] = [];
  for await (const one of openai.conversations.items.list(conversation.id, { order: "asc" })) items.push(one.type);
  assert.equal(items.length, 5);
  await openai.conversations.delete(conversation.id);
  await assert.rejects(openai.responses.create({ model: "m", conversation: conversation.id, input: "Hi" }), { status: 404 });
});

test("an item that is referred to is the item that was answered", async () => {
  await using at = await proxyAt((_, index) => replies[index] ?? {});
  const client = await at.open({ purpose: "train" });
  const openai = sdk(at, client);
  const first = await openai.responses.create({ model: "m", input: "Look", tools });
  const references = first.output.map((item, index) => ({ ...(index > 0 && { type: "item_reference" as const }), id: item.id ?? "" }));
  await openai.responses.create({
    model: "m",
    input: [{ role: "user", content: "Look" }, ...(references as OpenAI.Responses.ResponseInputItem.ItemReference[]), outputOf(first)],
    tools,
  });
  assert.deepEqual(
    (await client.trajectory()).calls.map((call) => call.match),
    ["root", "exact"],
  );
});

test("input tokens are counted with all that the request refers to, and nothing is generated", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const openai = sdk(at, client);
  const alone = await openai.responses.inputTokens.count({ model: "m", input: "Hi" });
  const first = await openai.responses.create({ model: "m", input: "Hi" });
  const more = await openai.responses.inputTokens.count({ previous_response_id: first.id, input: "Hi" });
  assert.equal(alone.object, "response.input_tokens");
  assert.ok(more.input_tokens > alone.input_tokens);
  assert.equal(at.engine.requests.length, 1);
  assert.equal((await client.trajectory()).calls.length, 1);
});

test("a proxy that comes back after a crash still knows what may be referred to", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const openai = sdk(at, client);
  const kept = await openai.responses.create({ model: "m", input: "Hi" });
  const deleted = await openai.responses.create({ model: "m", input: "Hi" });
  await openai.responses.delete(deleted.id);
  const conversation = await openai.conversations.create({});
  await client.settled();
  await using again = await HarnessProxy.start({ engine: at.proxy.engine, store: at.proxy.sessions.store, version: "test", rebuild: true });
  const later = new OpenAI({ baseURL: `${again.url}/v1`, apiKey: client.key, maxRetries: 0 });
  assert.equal((await later.responses.retrieve(kept.id)).output_text, "ok");
  await assert.rejects(later.responses.retrieve(deleted.id), { status: 404 });
  assert.equal((await later.responses.create({ model: "m", conversation: conversation.id, input: "Hi" })).output_text, "ok");
});
