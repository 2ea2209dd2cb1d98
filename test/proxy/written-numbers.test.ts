/** Numbers that JavaScript would write in another way, in what a tool gave and in calls that others made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proxyAt } from "../fakes/proxy-at.ts";

const value = '{"id":1234567890123456789,"score":1.0,"tiny":1e-7}';

const google = "/v1beta/models/any:generateContent";
const cases: [title: string, path: string, body: string, args: string | null, result: string | null][] = [
  [
    "a function response and a foreign call of generateContent",
    google,
    `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"id":"x","name":"f","args":${value}}}]},
      {"role":"user","parts":[{"functionResponse":{"id":"x","name":"f","response":{"output":${value}}}}]}],"generationConfig":{"temperature":1.0}}`,
    value,
    value,
  ],
  [
    "a response of generateContent that is one number",
    google,
    '{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"x","name":"f","response":{"output":1.50}}}]}]}',
    null,
    "1.50",
  ],
  [
    "a foreign call of Messages",
    "/v1/messages",
    `{"model":"any","max_tokens":9,"temperature":1.0,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":${value}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"ok"}]}]}`,
    value,
    "ok",
  ],
  [
    "a foreign call of chat whose arguments are an object",
    "/v1/chat/completions",
    `{"model":"any","temperature":1.0,"messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":${value}}}]},
      {"role":"tool","tool_call_id":"x","content":"ok"}]}`,
    value,
    "ok",
  ],
];

test("what tools gave and what others called reaches the engine and the record number by number as it was sent", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  for (const [title, path, body, args, result] of cases) {
    const client = await at.open({ purpose: "eval" });
    const answer = await client.post(path, body);
    assert.equal(answer.status, 200, `${title}: ${await answer.text()}`);
    const asked = at.engine.requests.at(-1)?.messages ?? [];
    const call = asked.find((message) => message.role === "assistant")?.tool_calls?.[0];
    assert.equal(call?.function.arguments ?? null, args, title);
    assert.equal(asked.find((message) => message.role === "tool")?.content ?? null, result, title);
    if (body.includes("temperature")) assert.equal(at.engine.requests.at(-1)?.temperature, 1, title);
    const begun = (await client.entries()).find((entry) => entry.type === "call_begun");
    const recorded = JSON.stringify(begun?.messages);
    if (args !== null) assert.ok(recorded.includes(JSON.stringify(args)), title);
  }
  assert.deepEqual(at.unseen, []);
});

test("a tool's schema may name its properties as it likes: they are values that anybody can read", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const properties = '{"input":{"minimum":1.0},"args":{"minItems":1.0},"response":{"maximum":1e3},"arguments":{"default":[2.0]}}';
  const bodies = [
    [
      google,
      `{"contents":[{"parts":[{"text":"go"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"properties":${properties}}}]}]}`,
    ],
    [
      "/v1/messages",
      `{"model":"any","max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f","input_schema":{"properties":${properties}}}]}`,
    ],
    [
      "/v1/chat/completions",
      `{"model":"any","messages":[{"role":"user","content":"b"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":${properties}}}}]}`,
    ],
  ] as const;
  for (const [path, body] of bodies) assert.equal((await client.post(path, body)).status, 200, path);
  const stored = (await client.entries()).flatMap((entry) => (entry.type === "tools" ? entry.tools : []));
  for (const { parameters } of stored)
    assert.deepEqual(parameters.properties, {
      input: { minimum: 1 },
      args: { minItems: 1 },
      response: { maximum: 1000 },
      arguments: { default: [2] },
    });
  assert.ok(stored.length > 0);
});
