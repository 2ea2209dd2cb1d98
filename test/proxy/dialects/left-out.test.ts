/** What no dialect leaves out in silence: tools, fields and history that an engine has no counterpart for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import type { Dialect } from "../../../proxy/dialects/dialect.ts";
import { dialects } from "../../../proxy/dialects/registry.ts";

type Body = Record<string, unknown>;

const hi = { role: "user", content: "Hi" };
const bodies: Record<string, Body> = {
  "openai-chat": { model: "m", messages: [hi] },
  "openai-responses": { model: "m", input: [hi] },
  "anthropic-messages": { model: "m", max_tokens: 9, messages: [hi] },
  "google-generate-content": { model: "m", contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
  "openai-completions": { model: "m", prompt: "Hi" },
};

const parse = (dialect: string, fields: Body) =>
  (dialects.find(({ name }) => name === dialect) as Dialect).parse({ ...bodies[dialect], ...fields }, {});

const named: [dialect: string, fields: Body, omitted: string[] | undefined][] = [
  [
    "openai-chat",
    { prediction: { type: "content", content: "x" }, verbosity: "low", made_up: 1 },
    ["field prediction", "field verbosity", "field made_up"],
  ],
  [
    "openai-chat",
    { reasoning: { effort: "low", max_tokens: 9 }, thinking: { type: "enabled", budget_tokens: 9 } },
    ["field reasoning.max_tokens", "field thinking.budget_tokens"],
  ],
  ["openai-chat", { messages: [hi, { role: "assistant", name: "a", content: "b" }, hi] }, ["field messages[].name"]],
  [
    "openai-chat",
    {
      user: "u",
      store: true,
      stream_options: { include_usage: true },
      n: 1,
      verbosity: "medium",
      made_up: null,
      other: [],
      skip_special_tokens: true,
    },
    undefined,
  ],
  [
    "openai-responses",
    { truncation: "auto", max_tool_calls: 3, context_management: [{ type: "compaction" }], text: { verbosity: "low" } },
    ["field truncation", "field max_tool_calls", "field context_management", "field text.verbosity"],
  ],
  [
    "openai-responses",
    { tools: [{ type: "mcp", server_label: "a" }, { type: "code_interpreter" }] },
    ["tool mcp", "tool code_interpreter"],
  ],
  [
    "openai-responses",
    {
      truncation: "disabled",
      include: [],
      reasoning: { summary: "auto", effort: "low" },
      text: { verbosity: "medium" },
      prompt_cache_key: "k",
      background: false,
    },
    undefined,
  ],
  [
    "anthropic-messages",
    {
      context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
      mcp_servers: [{ url: "u" }],
      thinking: { type: "enabled", budget_tokens: 1024 },
    },
    ["field context_management", "field mcp_servers", "field thinking.budget_tokens"],
  ],
  [
    "anthropic-messages",
    { context_management: { edits: [] }, metadata: { user_id: "u" }, thinking: { type: "adaptive" }, output_config: { effort: "high" } },
    undefined,
  ],
  [
    "google-generate-content",
    { tools: [{ googleSearch: {} }], generationConfig: { mediaResolution: "LOW", thinkingConfig: { thinkingBudget: 512 } } },
    ["tool googleSearch", "field generationConfig.mediaResolution", "field generationConfig.thinkingConfig.thinkingBudget"],
  ],
  [
    "google-generate-content",
    { safetySettings: [{}], generationConfig: { temperature: 1, thinkingConfig: { includeThoughts: true, thinkingBudget: -1 } } },
    undefined,
  ],
  ["openai-completions", { logprobs: 1, made_up: { a: 1 } }, ["field made_up"]],
  [
    "google-generate-content",
    { tools: [{ mcpServers: [{ name: "s" }], googleSearch: null, urlContext: {} }] },
    ["tool mcpServers", "tool urlContext"],
  ],
  ["anthropic-messages", { tools: [{ name: "f", input_schema: {}, input_examples: [{ a: 1 }] }] }, ["field tools[].input_examples"]],
];

for (const [dialect, fields, omitted] of named)
  test(`${dialect}: ${JSON.stringify(fields).slice(0, 90)} leaves out ${omitted?.join(", ") ?? "nothing"}`, () => {
    assert.deepEqual(parse(dialect, fields).omitted, omitted);
  });

test("a request of a thousand fields names some, and says how many more there are", () => {
  const fields = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`${"x".repeat(500)}${at}`, 1]));
  const { omitted = [] } = parse("openai-chat", { ...fields, a: 1, constructor: 1 });
  assert.ok(omitted.length <= 33 && omitted.every((name) => name.length <= 80), String(omitted.length));
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`field${at}`, 1]));
  assert.equal(parse("openai-chat", many).omitted?.at(-1), "968 more");
});

const refused: [dialect: string, fields: Body, param: string, what: RegExp][] = [
  ["anthropic-messages", { tools: [{ name: "f" }, { type: "computer_20990101", name: "computer" }] }, "tools[1].type", /computer_20990101/],
  ["google-generate-content", { tools: [{ computerUse: true }] }, "tools[0].computerUse", /object/],
  ["openai-chat", { tools: [{ type: "computer_use_preview" }] }, "tools[0].type", /computer_use_preview/],
  ["openai-responses", { input: [hi, { type: "made_up", id: "x" }] }, "input[1].type", /made_up.*left out/],
  [
    "openai-responses",
    { input: [{ role: "user", content: [{ type: "input_image", file_id: "file_1" }] }] },
    "input[0].content[0].file_id",
    /data:.*image_url/,
  ],
  [
    "anthropic-messages",
    { messages: [hi, { role: "assistant", content: [{ type: "made_up" }] }, hi] },
    "messages[1].content[0].type",
    /made_up.*left out/,
  ],
  ["openai-chat", { messages: [hi, { role: "assistant", audio: { id: "a" } }, hi] }, "messages[1].audio", /transcript/],
];

for (const [dialect, fields, param, what] of refused)
  test(`${dialect}: ${JSON.stringify(fields).slice(0, 90)} is refused at ${param}`, () => {
    assert.throws(
      () => parse(dialect, fields),
      (error) => error instanceof AlidadeError && error.code === "request_invalid" && error.param === param && what.test(error.message),
    );
  });
