/** Numbers that JavaScript would write in another way, in what a tool gave and in calls that others made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LogEntry } from "../../../base/schema/session-log.ts";
import { chat } from "../../../exporters/chat.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { exported } from "../../fakes/records/exported.ts";

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

const schema = '{"type":"object","properties":{"parameters":{"minimum":0.0,"maximum":9223372036854775807},"input":{"default":[2.0,1e3]}}}';
const plain = { type: "object", properties: { parameters: { minimum: 0, maximum: 2 ** 63 }, input: { default: [2, 1000] } } };
const declaring: [path: string, body: string][] = [
  [
    "/v1/chat/completions",
    `{"model":"any","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`,
  ],
  ["/v1/responses", `{"model":"any","input":"b","tools":[{"type":"function","name":"f","parameters":${schema}}]}`],
  [
    "/v1/responses",
    `{"model":"any","input":[{"role":"user","content":"c"}],"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f","parameters":${schema}}]}]}`,
  ],
  [
    "/v1/messages",
    `{"model":"any","max_tokens":9,"messages":[{"role":"user","content":"d"}],"tools":[{"name":"f","input_schema":${schema.replaceAll(":", ": ")}}]}`,
  ],
  [google, `{"contents":[{"parts":[{"text":"e"}]}],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":${schema}}]}]}`],
  [google, `{"contents":[{"parts":[{"text":"f"}]}],"tools":[{"function_declarations":[{"name":"f","parameters_json_schema":${schema}}]}]}`],
];

test("a tool's schema reaches engine, record and rows number by number as it was sent, and stays a value to read", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  for (const [path, body] of declaring) {
    const client = await at.open();
    // The second one reads only what is new of it.
    const padded = body.replace('"model":"any"', `"model":"any","user":"${"x".repeat(20_000)}"`);
    for (const text of [body, padded, padded]) assert.equal((await client.post(path, text)).status, 200, path);
    for (const text of at.engine.bodies.slice(-3)) assert.ok(text.includes(`"parameters":${schema}`), path);
    const entries = LogEntry.array().parse(JSON.parse(JSON.stringify(await client.entries())));
    const seen = entries.flatMap((entry) => (entry.type === "tools" ? entry.tools : []));
    assert.deepEqual(
      seen.map(({ parameters, parameters_source }) => [parameters, parameters_source]),
      [[plain, schema]],
      path,
    );
    await client.settled();
    const { bytes } = await exported(chat, [reconstruct(await client.entries(), { reward: 1 })]);
    assert.ok(bytes.includes(`"parameters":${schema}`), path);
  }
});

test("the schema of a tool that says its numbers as JavaScript does is kept once", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const body =
    '{"model":"any","temperature":1.0,"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"minimum":1}}}]}';
  assert.equal((await client.post("/v1/chat/completions", body)).status, 200);
  const [tool] = (await client.entries()).flatMap((entry) => (entry.type === "tools" ? entry.tools : []));
  assert.deepEqual(tool, { name: "f", parameters: { minimum: 1 }, kind: "function" });
});

test("a tool's schema may name its properties as it likes: they are values that every client can read", async () => {
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
    assert.deepEqual(parameters?.properties, {
      input: { minimum: 1 },
      args: { minItems: 1 },
      response: { maximum: 1000 },
      arguments: { default: [2] },
    });
  assert.ok(stored.length > 0);
});
