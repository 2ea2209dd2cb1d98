/** What hosted APIs cannot be told, or are told in another way. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { Message } from "../../../base/schema/message.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { endOf, failureOf, messages, sampleAll, withEngine } from "../../contracts/engine-cases.ts";

test("hosted: a parameter that changes what is sampled and has no place is refused by name; one that says nothing is left out", async () => {
  for (const kind of ["openai", "anthropic", "google"])
    await withEngine(kind, { text: "ok" }, async (engine) => {
      const error = await failureOf(sampleAll(engine, { sampling: { structured_outputs: { choice: ["a"] } } }));
      assert.deepEqual([error.code, error.param], ["request_invalid", "structured_outputs"]);
      const neutral = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, presence_penalty: 0, frequency_penalty: 0, repetition_penalty: 1 };
      assert.equal(endOf(await sampleAll(engine, { sampling: { ...neutral, max_tokens: 5 } })).finish_reason, "stop");
    });
});

test("hosted: an image that is in its own URL goes out as bytes, one that is elsewhere as its address", async () => {
  const image = (url: string) => ({ type: "image" as const, url });
  const asked: Message[] = [{ role: "user", parts: [image("data:image/png;base64,AA=="), image("https://example.com/a.png")] }];
  const sentBy = async (kind: string): Promise<string> => {
    let sent = "";
    await withEngine(kind, { text: "ok" }, async (engine, server) => {
      await sampleAll(engine, { messages: asked, tools: [] });
      sent = JSON.stringify(server.requests[0]);
    });
    return sent;
  };
  const anthropic = await sentBy("anthropic");
  assert.ok(anthropic.includes('{"type":"base64","media_type":"image/png","data":"AA=="}'), anthropic);
  assert.ok(anthropic.includes('{"type":"url","url":"https://example.com/a.png"}'), anthropic);
  const google = await sentBy("google");
  assert.match(google, /"inlineData":\{("data":"AA==","mimeType":"image\/png"|"mimeType":"image\/png","data":"AA==")\}/);
  assert.match(google, /"fileUri":"https:\/\/example.com\/a.png"/);
});

test("anthropic: a later system turn is a user's, and arguments that are no object stay the text that they were", async () => {
  await withEngine("anthropic", { text: "ok" }, async (engine, server) => {
    const odd: Message[] = [
      ...messages,
      { role: "assistant", parts: [{ type: "tool_call", id: "odd1", name: "bash", arguments: '{"command": ', kind: "function" }] },
      { role: "tool", parts: [{ type: "tool_result", call_id: "odd1", content: [{ type: "text", text: "bad JSON" }], is_error: true }] },
      { role: "system", parts: [{ type: "text", text: "Hurry." }] },
    ];
    await sampleAll(engine, { messages: odd });
    const sent = server.requests[0] as { system: string; messages: { role: string; content: Record<string, unknown>[] }[] };
    assert.equal(sent.system, "Be brief.");
    assert.deepEqual(
      sent.messages.map(({ role, content }) => [role, content.map((block) => block.type)]),
      [
        ["user", ["text"]],
        ["assistant", ["text", "tool_use"]],
        ["user", ["tool_result"]],
        ["assistant", ["text"]],
        ["user", ["text", "text"]],
      ],
    );
    assert.equal(sent.messages[3]?.content[0]?.text, 'bash({"command": )');
    assert.equal(sent.messages[4]?.content[1]?.text, "Hurry.");
  });
});

test("openai-compatible: a call is one call where text came between its fragments; calls that share a number, or have none, are told apart by their ids", async () => {
  const call = (index: number | undefined, id: string | undefined, args: string) => ({
    tool_calls: [{ index, id, type: "function", function: { ...(id && { name: "f" }), arguments: args } }],
  });
  for (const [deltas, expected] of [
    [[call(0, "a", '{"x": '), { content: "\n" }, call(0, undefined, "1}")], [["a", '{"x": 1}']]],
    [[call(0, "a", '{"x": '), { tool_calls: [{ index: 0, id: "b", function: { arguments: "1}" } }] }], [["a", '{"x": 1}']]],
    [
      [call(0, "a", "{}"), call(0, "b", '{"y": 2}')],
      [
        ["a", "{}"],
        ["b", '{"y": 2}'],
      ],
    ],
    [
      [call(undefined, "a", "{}"), call(undefined, "b", "{}")],
      [
        ["a", "{}"],
        ["b", "{}"],
      ],
    ],
  ] as const)
    assert.deepEqual(await callsOf(deltas), expected);
});

/** The ids and arguments of the calls that a server said with these deltas. */
async function callsOf(deltas: readonly object[]): Promise<[string, string][]> {
  const server = createServer((_incoming, outgoing) => {
    outgoing.writeHead(200, { "content-type": "text/event-stream" });
    for (const delta of [...deltas, {}]) {
      const finish_reason = Object.keys(delta).length === 0 ? "tool_calls" : null;
      outgoing.write(`data: ${JSON.stringify({ model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    }
    outgoing.end("data: [DONE]\n\n");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const engine = engineNamed("openai-compatible").create({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    apiKey: null,
  });
  try {
    const events = await sampleAll(engine);
    return events.flatMap((event): [string, string][] => (event.type === "tool-call" ? [[event.id, event.arguments]] : []));
  } finally {
    await engine.close();
    server.closeAllConnections();
    server.close();
  }
}
