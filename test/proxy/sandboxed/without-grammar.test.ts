/** A sample under a grammar is left out of RL, so a sandboxed agent does not ask for one in training. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const trained: Partial<SessionSpec> = { sandboxed: true, purpose: "train" };
const schema = { type: "object", properties: { a: { type: "string" } } };

type Request = { path: string; body: Record<string, unknown> };
const chat = (more: Record<string, unknown>, strict?: boolean): Request => ({
  path: "/v1/chat/completions",
  body: {
    model: "m",
    messages: [{ role: "user", content: "hi" }],
    tools: [{ type: "function", function: { name: "f", parameters: schema, ...(strict && { strict }) } }],
    ...more,
  },
});
const responses = (more: Record<string, unknown>, strict?: boolean): Request => ({
  path: "/v1/responses",
  body: { model: "m", input: "hi", tools: [{ type: "function", name: "f", parameters: schema, ...(strict && { strict }) }], ...more },
});
const messages = (more: Record<string, unknown>, strict?: boolean): Request => ({
  path: "/v1/messages",
  body: {
    model: "m",
    max_tokens: 9,
    messages: [{ role: "user", content: "hi" }],
    tools: [{ name: "f", input_schema: schema, ...(strict && { strict }) }],
    ...more,
  },
});
const google = (more: Record<string, unknown>): Request => ({
  path: "/v1beta/models/m:generateContent",
  body: {
    contents: [{ role: "user", parts: [{ text: "hi" }] }],
    tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: schema }] }],
    ...more,
  },
});
const calling = (config: Record<string, unknown>) => google({ toolConfig: { functionCallingConfig: config } });

/** Every way in which a dialect asks for a grammar, with the field that an operator allows it by. */
const asked: [name: string, field: string, Request][] = [
  ["chat, a JSON object", "response_format", chat({ response_format: { type: "json_object" } })],
  ["chat, a schema", "response_format", chat({ response_format: { type: "json_schema", json_schema: { name: "x", schema } } })],
  ["chat, a call that is required", "tool_choice", chat({ tool_choice: "required" })],
  ["chat, a named tool", "tool_choice", chat({ tool_choice: { type: "function", function: { name: "f" } } })],
  [
    "chat, one of the allowed tools",
    "tool_choice",
    chat({
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] },
      },
    }),
  ],
  ["chat, a strict tool", "strict", chat({}, true)],
  ["chat, one call only", "parallel_tool_calls", chat({ parallel_tool_calls: false })],
  ["responses, a schema", "response_format", responses({ text: { format: { type: "json_schema", name: "x", schema } } })],
  ["responses, a call that is required", "tool_choice", responses({ tool_choice: "required" })],
  ["responses, a named tool", "tool_choice", responses({ tool_choice: { type: "function", name: "f" } })],
  ["responses, a strict tool", "strict", responses({}, true)],
  ["responses, one call only", "parallel_tool_calls", responses({ parallel_tool_calls: false })],
  ["messages, a schema", "response_format", messages({ output_config: { format: { type: "json_schema", schema } } })],
  ["messages, any tool", "tool_choice", messages({ tool_choice: { type: "any" } })],
  ["messages, a named tool", "tool_choice", messages({ tool_choice: { type: "tool", name: "f" } })],
  ["messages, a strict tool", "strict", messages({}, true)],
  ["messages, one call only", "parallel_tool_calls", messages({ tool_choice: { type: "auto", disable_parallel_tool_use: true } })],
  [
    "google, a schema",
    "response_format",
    google({ generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema } }),
  ],
  ["google, JSON", "response_format", google({ generationConfig: { responseMimeType: "application/json" } })],
  ["google, any tool", "tool_choice", calling({ mode: "ANY" })],
  ["google, a named tool", "tool_choice", calling({ mode: "ANY", allowedFunctionNames: ["f"] })],
];

for (const [name, field, { path, body }] of asked)
  test(`an agent takes no token out of training by a grammar, unless its operator allows it (${name})`, async () => {
    await using at = await proxyAt(() => ({ text: "ok", token_ids: [7] }));
    const client = await at.open(trained);
    assert.equal((await client.post(path, body)).status, 200);
    const { calls } = await client.trajectory();
    assert.equal(calls[0]?.logprob_semantics.grammar, false);
    const sent = at.engine.requests[0] ?? assert.fail();
    assert.equal(sent.response_format, undefined);
    assert.ok([undefined, "auto"].includes(sent.tool_choice as string | undefined));
    assert.notEqual(sent.parallel_tool_calls, false);
    assert.ok(!JSON.stringify(sent.tools).includes("strict"));

    const allowed = await at.open({ ...trained, allow_fields: [field] });
    assert.equal((await allowed.post(path, body)).status, 200);
    assert.equal((await allowed.trajectory()).calls[0]?.logprob_semantics.grammar, true);
  });

test("the record says what was asked for and what the engine was asked", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open(trained);
  const format = { type: "json_object" };
  const { path, body } = chat({ response_format: format, tool_choice: "required", parallel_tool_calls: false }, true);
  await client.post(path, body);
  await client.settled();
  const entries = await client.entries();
  const begun = entries.find((entry) => entry.type === "call_begun") ?? assert.fail();
  assert.deepEqual([begun.requested_sampling.response_format, begun.requested_sampling.parallel_tool_calls], [format, false]);
  assert.deepEqual([begun.effective_sampling.response_format, begun.effective_sampling.parallel_tool_calls], [undefined, undefined]);
  assert.equal(begun.tool_choice, null);
  assert.deepEqual(begun.withheld, { tool_choice: "required", strict: ["f"] });
  assert.deepEqual((await client.trajectory()).calls[0]?.withheld, begun.withheld);
  const tools = entries.find((entry) => entry.type === "tools") ?? assert.fail();
  assert.equal(tools.tools[0]?.strict, undefined);
});

test("what asks for no grammar is passed on as it is", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open(trained);
  for (const tool_choice of ["none", "auto"]) {
    const { path, body } = chat({ tool_choice, parallel_tool_calls: true });
    await client.post(path, body);
    const sent = at.engine.requests.at(-1) ?? assert.fail();
    assert.deepEqual([sent.tool_choice, sent.parallel_tool_calls], [tool_choice, true]);
  }
  await client.settled();
  for (const entry of await client.entries()) if (entry.type === "call_begun") assert.equal(entry.withheld, undefined);
});

test("a grammar that the operator forces holds, and so does one that is asked for outside of training or of a sandbox", async () => {
  const { path, body } = chat({ response_format: { type: "json_object" }, tool_choice: "required" }, true);
  for (const [spec, expected] of [
    [{ ...trained, sampling: { structured_outputs: { choice: ["ok"] } } }, { structured_outputs: { choice: ["ok"] } }],
    [{ ...trained, sampling: { parallel_tool_calls: false } }, { parallel_tool_calls: false }],
    [
      { sandboxed: true, purpose: "eval" },
      { tool_choice: "required", response_format: { type: "json_object" } },
    ],
    [{ purpose: "train" }, { tool_choice: "required", response_format: { type: "json_object" } }],
  ] as [Partial<SessionSpec>, Record<string, unknown>][]) {
    await using at = await proxyAt(() => ({ text: "ok" }));
    const client = await at.open(spec);
    assert.equal((await client.post(path, body)).status, 200);
    const sent = at.engine.requests[0] ?? assert.fail();
    for (const [field, value] of Object.entries(expected)) assert.deepEqual(sent[field], value);
    assert.equal((await client.trajectory()).calls[0]?.logprob_semantics.grammar, true);
  }
});
