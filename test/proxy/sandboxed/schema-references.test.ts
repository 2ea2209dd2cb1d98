/** A schema from a sandbox refers to nothing that an engine would have to fetch. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

type Schema = Record<string, unknown>;
const question = [{ role: "user", content: "hi" }];

/** A schema in every place where a dialect has one. */
const places: Record<string, (schema: Schema) => { path: string; body: Schema }> = {
  "chat, a tool": (parameters) => ({
    path: "/v1/chat/completions",
    body: { model: "m", messages: question, tools: [{ type: "function", function: { name: "f", parameters } }] },
  }),
  "chat, an answer": (schema) => ({
    path: "/v1/chat/completions",
    body: { model: "m", messages: question, response_format: { type: "json_schema", json_schema: { name: "x", schema } } },
  }),
  "responses, a tool": (parameters) => ({
    path: "/v1/responses",
    body: { model: "m", input: "hi", tools: [{ type: "function", name: "f", parameters }] },
  }),
  "responses, an answer": (schema) => ({
    path: "/v1/responses",
    body: { model: "m", input: "hi", text: { format: { type: "json_schema", name: "x", schema } } },
  }),
  "messages, a tool": (input_schema) => ({
    path: "/v1/messages",
    body: { model: "m", max_tokens: 9, messages: question, tools: [{ name: "f", input_schema }] },
  }),
  "messages, an answer": (schema) => ({
    path: "/v1/messages",
    body: { model: "m", max_tokens: 9, messages: question, output_config: { format: { type: "json_schema", schema } } },
  }),
  "messages, a count of tokens": (input_schema) => ({
    path: "/v1/messages/count_tokens",
    body: { model: "m", messages: question, tools: [{ name: "f", input_schema }] },
  }),
  "google, a tool": (parametersJsonSchema) => google({ tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema }] }] }),
  "google, an answer": (responseJsonSchema) => google({ generationConfig: { responseMimeType: "application/json", responseJsonSchema } }),
};

function google(more: Schema) {
  return { path: "/v1beta/models/m:generateContent", body: { contents: [{ role: "user", parts: [{ text: "hi" }] }], ...more } };
}

const outside = "http://169.254.169.254/latest/meta-data/";
for (const [name, place] of Object.entries(places))
  test(`a reference to an address reaches no engine from a sandbox (${name})`, async () => {
    await using at = await proxyAt(() => ({ text: "ok" }));
    const client = await at.open({ sandboxed: true });
    for (const inner of [{ $ref: outside }, { anyOf: [{ items: { $ref: "file:///etc/passwd" } }] }, { $dynamicRef: "other.json" }]) {
      const { path, body } = place({ type: "object", properties: { default: inner } });
      const response = await client.post(path, body);
      assert.equal(response.status, 400);
      assert.match(JSON.stringify(await response.json()), /refers to .*(169\.254|etc\/passwd|other\.json).* begin the \$ref with #/);
    }
    assert.deepEqual(at.engine.requests, []);
  });

test("references within a schema, properties of that name and values that look like one are passed on", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open({ sandboxed: true });
  const schema = {
    type: "object",
    $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
    properties: { $ref: { type: "string", default: { $ref: outside } }, all: { $ref: "#" }, one: { enum: [{ $ref: outside }] } },
  };
  for (const name of ["chat, a tool", "chat, an answer"]) {
    const { path, body } = places[name]?.(schema) ?? assert.fail();
    assert.equal((await client.post(path, body)).status, 200);
  }
});

test("a person's own session refers to what it likes", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const { path, body } = places["chat, a tool"]?.({ $ref: outside }) ?? assert.fail();
  assert.equal((await (await at.open()).post(path, body)).status, 200);
});
