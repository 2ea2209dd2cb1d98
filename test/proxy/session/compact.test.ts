/** `/responses/compact` with the vendor's own SDK as client. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import type { ResponseInputItem } from "openai/resources/responses/responses";
import { textOf } from "../../../base/schema/message.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const task = { role: "user" as const, content: "Repair add.js, and keep its name." };
const sdk = (client: Client) => new OpenAI({ baseURL: `${client.proxy.url}/v1`, apiKey: client.key, maxRetries: 0 });

test("a conversation is compacted by a recorded call, and goes on from the answer's own items", async () => {
  const says = ["I looked at it.", "SUMMARY: add.js subtracts; the minus is to be a plus.", "Repaired."];
  await using at = await proxyAt((_, index) => ({ text: says[index] ?? "?" }));
  const client = await at.open({ purpose: "train" });
  const openai = sdk(client);
  const first = await openai.responses.create({ model: "m", instructions: "Be brief.", input: [task] });
  const compacted = await openai.responses.compact({
    model: "m",
    instructions: "Be brief.",
    input: [task, ...(first.output as ResponseInputItem[]), { role: "user", content: "And now?" }],
  });
  assert.equal(compacted.object, "response.compaction");
  assert.deepEqual(
    compacted.output.map((item) => (item.type === "message" ? [item.type, item.content[0]] : [item.type])),
    [["message", { type: "input_text", text: task.content }], ["message", { type: "input_text", text: "And now?" }], ["compaction"]],
    "all user messages as they were, then one item for everything else",
  );
  assert.equal(compacted.usage.output_tokens, (says[1] ?? "").length + 1);
  const asked = at.engine.requests[1];
  assert.deepEqual([asked?.tools, asked?.messages.length], [undefined, 5]);
  assert.match(String(asked?.messages.at(-1)?.content), /summary/);

  const last = await openai.responses.create({
    model: "m",
    instructions: "Be brief.",
    input: [...(compacted.output as ResponseInputItem[]), { role: "user", content: "Go on." }],
  });
  assert.equal(last.output_text, "Repaired.");
  const goesOn = at.engine.requests[2]?.messages.map((message) => String(message.content)) ?? [];
  assert.deepEqual(
    goesOn.map((text) => text.replace(/^.*\n\nSUMMARY/s, "… SUMMARY")),
    ["Be brief.", task.content, "And now?", `… ${says[1]}`, "Go on."],
  );
  const { calls, nodes } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.request_class),
    ["main", "compaction", "main"],
  );
  assert.equal(calls[2]?.cause, "compacted");
  assert.ok(
    nodes.some((node) => node.call_id === calls[1]?.call_id && node.kind === "sampled" && node.trainable),
    "the summary is trained",
  );
  const session = at.proxy.session(client.sessionId);
  assert.equal(textOf(session.turnOf(calls[1]?.call_id ?? "")?.message ?? { role: "user", parts: [] }), says[1]);
  assert.deepEqual(at.unseen, []);
});

test("a conversation that was never sent again is compacted by the id of its last response", async () => {
  await using at = await proxyAt((_, index) => ({ text: `turn ${index}` }));
  const openai = sdk(await at.open());
  const first = await openai.responses.create({ model: "m", input: [task] });
  const compacted = await openai.responses.compact({ model: "m", previous_response_id: first.id });
  assert.deepEqual(
    at.engine.requests[1]?.messages.slice(0, 2).map((message) => message.content),
    [task.content, "turn 0"],
  );
  assert.deepEqual(
    compacted.output.map((item) => item.type),
    ["message", "compaction"],
  );
});

test("a compaction that was made elsewhere cannot be read, and says so instead of being left out", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  for (const item of [{ type: "compaction", encrypted_content: "gAAAA" }, { type: "compaction" }, { type: "compaction_trigger" }]) {
    const refused = await client.post("/v1/responses", { model: "m", input: [task, item] });
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /"param":"input\[1\]/);
  }
  assert.equal((await client.post("/v1/responses/compact", { model: "m" })).status, 400, "there is nothing to compact");
  assert.equal(at.engine.requests.length, 0);
});

test("only the route asks for a compaction, no field of the body", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open({});
  const ask = async (path: string, compaction: boolean) =>
    (await (await client.post(path, { model: "m", input: "Go on.", compaction })).json()) as { object: string };
  assert.equal((await ask("/v1/responses", true)).object, "response");
  assert.equal((await ask("/v1/responses/compact", false)).object, "response.compaction");
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.request_class),
    ["main", "compaction"],
  );
});
