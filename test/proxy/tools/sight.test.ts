/** The check for harnesses that do not show the model the pictures of its tools. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { pngOf } from "../../fakes/records/png.ts";
import { placeOf, rawService, usualAnswer } from "../../fakes/tools/tool-services.ts";
import { callText, type ToolsAt, toolsAt } from "../../fakes/tools/tools-at.ts";

const served = pngOf(64, 40, [1, 2, 3]).toString("base64");
const other = pngOf(32, 20, [1, 2, 3]).toString("base64");
const task = { role: "user", content: "look" };
const shows = (base64: string) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } });

type Asked = { id: string; name: string; arguments: string };

/** Starts a model that asks for a screenshot, and a service that gives one. `before`: calls that the same turn makes first. */
async function withScreen(service = "shop", before: Asked[] = []): Promise<ToolsAt> {
  const place = placeOf({
    [service]: rawService((message) => {
      if (message.method !== "tools/call") return usualAnswer(message, '[{"name":"screenshot"}]');
      const content = [{ type: "image", data: served, mimeType: "image/png" }];
      return JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { content } });
    }),
  });
  const servers = [{ name: "shop", service, port: 8000 }];
  const tool_calls = [...before, { id: "x", name: "mcp__shop__screenshot", arguments: "{}" }];
  return toolsAt({ servers, place, script: (_, index) => (index === 0 ? { tool_calls } : { text: "seen" }) });
}

/** The model asks, and the harness makes the call. Returns the conversation and the id of the result. */
async function asked(tools: ToolsAt): Promise<{ messages: Record<string, unknown>[]; id: string }> {
  const said = await tools.client.say([task]);
  const [call] = said.tool_calls as { id: string }[];
  await tools.post(callText("screenshot", "{}"));
  return { messages: [task, said], id: call?.id ?? "" };
}

const result = (id: string, content: unknown) => ({ role: "tool", tool_call_id: id, content });

/** `sends`: the harness's message after the call. `why`: the sentence that ends the rollout; null: it continues. */
const harnesses: { says: string; sends: (id: string) => unknown[]; why: RegExp | null }[] = [
  { says: "shows the picture in the result", sends: (id) => [result(id, [shows(served)])], why: null },
  { says: "shows it in a message behind it", sends: (id) => [result(id, "below"), { role: "user", content: [shows(served)] }], why: null },
  {
    says: "drops it",
    sends: (id) => [result(id, "a picture")],
    why: /shop\.screenshot answered with a picture of 64x40 .* shows no picture/,
  },
  { says: "scales it", sends: (id) => [result(id, [shows(other)])], why: /shows another one of 32x20 in its place/ },
];

for (const { says, sends, why } of harnesses)
  test(`a harness that ${says} ${why === null ? "goes on" : "ends the rollout as harness_blind"}`, async () => {
    await using tools = await withScreen();
    const { messages, id } = await asked(tools);
    const response = await tools.client.chat({ messages: [...messages, ...sends(id)] });
    const { failed, failure } = tools.relay;
    assert.deepEqual([failed.aborted, failure?.code ?? null], why === null ? [false, null] : [true, "harness_blind"]);
    if (why === null) assert.equal(response.status, 200);
    else {
      assert.match(failure?.message ?? "", why);
      assert.match(JSON.stringify(await response.json()), /the model does not see what its tools show/);
    }
  });

test("only the first picture is checked: later requests may drop it", async () => {
  await using tools = await withScreen();
  const { messages, id } = await asked(tools);
  await tools.client.say([...messages, result(id, [shows(served)])]);
  assert.equal((await tools.client.chat({ messages: [...messages, result(id, "cleared")] })).status, 200);
  assert.equal(tools.relay.failure, null);
});

test("a summary of what was said shows no picture, and says nothing of the harness", async () => {
  await using tools = await withScreen();
  const { messages, id } = await asked(tools);
  const compacts = { "x-interaction-type": "conversation-compaction" };
  const summary = [...messages, result(id, "[image]"), { role: "user", content: "Sum up." }];
  const response = await tools.client.post("/v1/chat/completions", { model: "any", messages: summary }, undefined, compacts);
  assert.deepEqual([response.status, tools.relay.failed.aborted], [200, false]);
  await tools.client.chat({ messages: [...messages, result(id, "a picture")] });
  const { failure } = tools.relay;
  assert.equal(failure?.code, "harness_blind", "its next request is looked at");
});

test("an agent that asks the relay by itself cannot make its harness look blind", async () => {
  await using tools = await withScreen();
  // The model did not ask for this picture, so no request needs to show it.
  await tools.post(callText("screenshot", "{}"));
  const said = await tools.client.say([task]);
  const [call] = said.tool_calls as { id: string }[];
  // The harness stopped waiting for its call before the picture came.
  await tools.client.say([task, said, result(call?.id ?? "", "timed out")]);
  await tools.post(callText("screenshot", "{}"));
  const messages = [task, said, result(call?.id ?? "", "timed out"), { role: "user", content: "go on" }];
  assert.equal((await tools.client.chat({ messages })).status, 200);
  assert.equal(tools.relay.failure, null);
});

test("a server in the agent's own sandbox cannot make its harness look blind", async () => {
  await using tools = await withScreen("main");
  const { messages, id } = await asked(tools);
  // The agent can have it answer with what no harness passes on.
  assert.equal((await tools.client.chat({ messages: [...messages, result(id, "no picture")] })).status, 200);
  assert.equal(tools.relay.failure, null);
});

test("a command of the same turn cannot take the run of a call that its harness then cancels", async () => {
  await using tools = await withScreen("shop", [{ id: "b", name: "bash", arguments: '{"command":"ask the relay; false"}' }]);
  const said = await tools.client.say([task]);
  const [bash, call] = said.tool_calls as { id: string }[];
  // By the command. Some harnesses cancel the calls beside one that failed.
  await tools.post(callText("screenshot", "{}"));
  const messages = [task, said, result(bash?.id ?? "", "exit code 1"), result(call?.id ?? "", "Cancelled: a call beside it failed")];
  assert.equal((await tools.client.chat({ messages })).status, 200);
  assert.equal(tools.relay.failure, null);
});
