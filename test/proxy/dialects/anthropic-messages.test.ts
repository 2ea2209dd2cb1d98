import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import type { Message, NeutralRequest, Part, Turn } from "../../../base/schema/message.ts";
import { anthropicMessages } from "../../../proxy/dialects/anthropic-messages.ts";
import type { AnswerContext } from "../../../proxy/dialects/dialect.ts";

const callId = "callaaaaaaaaaaaaaaaaaaaa";
const hello = { role: "user", content: "Hi" };
const parse = (fields: Record<string, unknown>): NeutralRequest =>
  anthropicMessages.parse({ model: "m", max_tokens: 10, messages: [hello], ...fields }, {});
const messagesOf = (messages: unknown[]): Message[] => parse({ messages }).messages;
const context: AnswerContext = { call_id: callId, created: 1, model: "m", native: {}, custom_tools: new Set() };
const turnOf = (parts: Part[]): Turn => ({
  message: { role: "assistant", parts },
  finish_reason: "tool_calls",
  stop: null,
  usage: { prompt_tokens: 1, cached_tokens: null, sampled_tokens: 1, reasoning_tokens: null },
});
const call = (name: string, rawArguments: string): Part => ({
  type: "tool_call",
  id: "e",
  name,
  arguments: rawArguments,
  kind: "function",
});

test("Claude Code's request comes through whole", () => {
  const request = parse({
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.329.403; cc_entrypoint=sdk-cli;" },
      { type: "text", text: "You are Claude Code.", cache_control: { type: "ephemeral" } },
      { type: "text", text: "Be careful.", cache_control: { type: "ephemeral" } },
    ],
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "<system-reminder>git</system-reminder>\n" },
          { type: "text", text: "Fix it" },
        ],
      },
      { role: "system", content: "Skills: none." },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: `ali1.${callId}` },
          { type: "text", text: "Sure." },
          { type: "tool_use", id: "a", name: "Read", input: { file_path: "/a" } },
          { type: "tool_use", id: "b", name: "Bash", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "b", content: "no such file", is_error: true },
          { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "1" }], cache_control: { type: "ephemeral" } },
          { type: "text", text: "Go on" },
        ],
      },
    ],
    tools: [
      { name: "Read", description: "Reads.", input_schema: { type: "object" } },
      { name: "Bash", input_schema: { type: "object" } },
      { name: "DeferredToolPlaceholder", input_schema: { type: "object" }, defer_loading: true },
      { type: "web_search_20250305", name: "web_search" },
    ],
    metadata: { user_id: '{"session_id":"s"}' },
    max_tokens: 32000,
    thinking: { type: "adaptive" },
    context_management: { edits: [] },
    output_config: { effort: "high" },
    stream: true,
  });
  assert.deepEqual(request.messages, [
    { role: "system", parts: [{ type: "text", text: "You are Claude Code.\n\nBe careful." }] },
    {
      role: "user",
      parts: [
        { type: "text", text: "<system-reminder>git</system-reminder>\n" },
        { type: "text", text: "Fix it" },
      ],
    },
    { role: "system", parts: [{ type: "text", text: "Skills: none." }] },
    {
      role: "assistant",
      parts: [
        { type: "reasoning", text: "hm", carrier: `ali1.${callId}` },
        { type: "text", text: "Sure." },
        { type: "tool_call", id: "a", name: "Read", arguments: '{"file_path":"/a"}', kind: "function" },
        { type: "tool_call", id: "b", name: "Bash", arguments: "{}", kind: "function" },
      ],
    },
    { role: "tool", parts: [{ type: "tool_result", call_id: "b", content: [{ type: "text", text: "no such file" }], is_error: true }] },
    { role: "tool", parts: [{ type: "tool_result", call_id: "a", content: [{ type: "text", text: "1" }], is_error: false }] },
    { role: "user", parts: [{ type: "text", text: "Go on" }] },
  ]);
  assert.deepEqual(
    request.tools.map((tool) => tool.name),
    ["Read", "Bash"],
  );
  assert.deepEqual(request.omitted, ["tool web_search_20250305"]);
  assert.deepEqual(request.native.deferred_tools, ["DeferredToolPlaceholder"]);
  assert.deepEqual(request.sampling, { max_tokens: 32000, reasoning_effort: "high" });
});

test("the billing header changes nothing, whatever its hash and wherever it stands", () => {
  const said = (system: unknown): Message[] => parse({ system }).messages;
  const plain = said("Prompt.");
  for (const hash of ["403", "f98", "576"]) {
    const header = `x-anthropic-billing-header: cc_version=2.1.329.${hash}; cc_entrypoint=sdk-cli;`;
    assert.deepEqual(
      said([
        { type: "text", text: header },
        { type: "text", text: "Prompt." },
      ]),
      plain,
    );
    assert.deepEqual(said(`${header}\nPrompt.`), plain);
  }
  assert.deepEqual(said("Say x-anthropic-billing-header: aloud.")[0]?.parts[0], {
    type: "text",
    text: "Say x-anthropic-billing-header: aloud.",
  });
});

test("a string and a list that say the same are the same", () => {
  const list = [{ type: "text", text: "a", cache_control: { type: "ephemeral" } }];
  assert.deepEqual(parse({ system: list }), parse({ system: "a" }));
  assert.deepEqual(messagesOf([{ role: "user", content: list }]), messagesOf([{ role: "user", content: "a" }]));
  const result = (content: unknown) => [hello, { role: "user", content: [{ type: "tool_result", tool_use_id: "x", content }] }];
  assert.deepEqual(messagesOf(result(list)), messagesOf(result("a")));
  assert.deepEqual(messagesOf(result(undefined)), messagesOf(result([])));
});

test("text before and after tool results stays around them, images too", () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
  const roles = messagesOf([
    {
      role: "user",
      content: [
        { type: "text", text: "a" },
        { type: "tool_result", tool_use_id: "x", content: [image] },
        image,
        { type: "text", text: "b" },
      ],
    },
  ]);
  const url = "data:image/png;base64,AA==";
  assert.deepEqual(roles, [
    { role: "user", parts: [{ type: "text", text: "a" }] },
    { role: "tool", parts: [{ type: "tool_result", call_id: "x", content: [{ type: "image", url }], is_error: false }] },
    {
      role: "user",
      parts: [
        { type: "image", url },
        { type: "text", text: "b" },
      ],
    },
  ]);
});

test("block order is kept, redacted thinking keeps its data, and a hosted call is a call", () => {
  const request = parse({
    messages: [
      hello,
      {
        role: "assistant",
        content: [
          { type: "text", text: "a" },
          { type: "redacted_thinking", data: "opaque" },
          { type: "server_tool_use", id: "s", name: "web_search", input: {} },
          { type: "tool_use", id: "x", name: "f", input: { n: 1 } },
          { type: "text", text: "b" },
        ],
      },
      hello,
    ],
  });
  assert.deepEqual(
    request.messages[1]?.parts.map((part) => part.type),
    ["text", "reasoning", "tool_call", "tool_call", "text"],
  );
  assert.deepEqual(request.messages[1]?.parts[1], { type: "reasoning", text: "", carrier: "opaque" });
});

test("what hosted tools brought stands in its place, as results of calls", () => {
  const found = { type: "web_search_result", title: "A", url: "https://a", encrypted_content: "opaque" };
  const { messages } = parse({
    messages: [
      hello,
      {
        role: "assistant",
        content: [
          { type: "text", text: "I search." },
          { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "a" } },
          { type: "web_search_tool_result", tool_use_id: "s1", content: [found] },
          { type: "mcp_tool_use", id: "m1", name: "find", server_name: "docs", input: {} },
          { type: "mcp_tool_result", tool_use_id: "m1", is_error: true, content: [{ type: "text", text: "gone" }] },
          { type: "server_tool_use", id: "s2", name: "code_execution", input: { code: "1" } },
          {
            type: "code_execution_tool_result",
            tool_use_id: "s2",
            content: { type: "code_execution_tool_result_error", error_code: "unavailable" },
          },
          { type: "text", text: "Found." },
        ],
      },
      hello,
    ],
  });
  const shown = messages.slice(1, -1).map(({ parts }) =>
    parts.map((part) => {
      if (part.type === "tool_call") return `${part.id} ${part.name} ${part.arguments}`;
      return part.type === "tool_result" ? [part.call_id, part.is_error, ...part.content] : part;
    }),
  );
  assert.deepEqual(shown, [
    [{ type: "text", text: "I search." }, 's1 web_search {"query":"a"}'],
    [["s1", false, { type: "text", text: '[{"type":"web_search_result","title":"A","url":"https://a"}]' }]],
    ["m1 docs__find {}"],
    [["m1", true, { type: "text", text: "gone" }]],
    ['s2 code_execution {"code":"1"}'],
    [["s2", true, { type: "text", text: '{"type":"code_execution_tool_result_error","error_code":"unavailable"}' }]],
    [{ type: "text", text: "Found." }],
  ]);
});

test("a document is its text, and a PDF is refused with what to do instead", () => {
  const ask = (source: Record<string, unknown>) =>
    parse({ messages: [{ role: "user", content: [{ type: "document", title: "A", source }] }] });
  const parts = [
    { type: "text", text: "A\n" },
    { type: "text", text: "words" },
  ];
  assert.deepEqual(ask({ type: "text", media_type: "text/plain", data: "words" }).messages[0]?.parts, parts);
  assert.deepEqual(ask({ type: "content", content: [{ type: "text", text: "words" }] }).messages[0]?.parts, parts);
  const pdf = { type: "base64", media_type: "application/pdf", data: "JVBERi0=" };
  for (const source of [pdf, { type: "url", url: "http://x/a.pdf" }, { type: "file", file_id: "f" }])
    assert.throws(
      () => ask(source),
      (error) =>
        error instanceof AlidadeError && error.param === "messages[0].content[0].source.type" && /send the text itself/.test(error.message),
    );
});

test("a deferred tool is shown once the conversation has looked it up", () => {
  const tools = [{ name: "Later", input_schema: {}, defer_loading: true }];
  assert.deepEqual(parse({ tools }).tools, []);
  const content = [{ type: "tool_result", tool_use_id: "x", content: [{ type: "tool_reference", tool_name: "Later" }] }];
  assert.equal(parse({ tools, messages: [hello, { role: "user", content }] }).tools[0]?.name, "Later");
});

test("sampling and tool choice are mapped", () => {
  const tools = [{ name: "f", input_schema: {} }];
  const { sampling } = parse({ temperature: 1, top_p: 0.5, top_k: 4, stop_sequences: ["X"], thinking: { type: "disabled" } });
  assert.deepEqual(sampling, { max_tokens: 10, temperature: 1, top_p: 0.5, top_k: 4, stop: ["X"], reasoning_effort: "none" });
  assert.equal(parse({ tools, tool_choice: { type: "any" } }).tool_choice, "required");
  assert.deepEqual(parse({ tools, tool_choice: { type: "tool", name: "f" } }).tool_choice, { name: "f" });
  const single = parse({ tools, tool_choice: { type: "auto", disable_parallel_tool_use: true } });
  assert.equal(single.tool_choice, "auto");
  assert.equal(single.sampling.parallel_tool_calls, false);
  const schema = { type: "object" };
  assert.deepEqual(parse({ output_config: { format: { type: "json_schema", schema } } }).sampling.response_format, {
    type: "json_schema",
    json_schema: { name: "output", schema },
  });
});

const refused: [Record<string, unknown>, string][] = [
  [{ messages: [hello, { role: "assistant", content: "I" }] }, "messages"],
  [{ messages: [{ role: "user", content: null }] }, "messages[0].content"],
  [{ messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages[0].content[0].text"],
  [{ messages: [{ role: "user", content: [{ type: "tool_result" }] }] }, "messages[0].content[0].tool_use_id"],
  [
    { messages: [{ role: "user", content: [{ type: "image", source: { type: "file", file_id: "f" } }] }] },
    "messages[0].content[0].source.type",
  ],
  [
    { messages: [{ role: "user", content: [{ type: "document", source: { type: "base64", media_type: "application/pdf", data: "" } }] }] },
    "messages[0].content[0].source.type",
  ],
  [{ system: 5 }, "system"],
  [{ system: [{ type: "image" }] }, "system[0].type"],
  [{ tools: [{ input_schema: {} }] }, "tools[0].name"],
  [{ tool_choice: { type: "tool", name: "nope" } }, "tool_choice.name"],
  [{ max_tokens: 0 }, "max_tokens"],
  [{ stop_sequences: "X" }, "stop_sequences"],
];
for (const [fields, param] of refused) {
  test(`${JSON.stringify(fields)} is refused at ${param}`, () => {
    assert.throws(
      () => parse(fields),
      (error) => error instanceof AlidadeError && error.param === param,
    );
  });
}

test("arguments that are no object go out as text and are flagged, never as {}", () => {
  for (const raw of ['{"a":', "[1]", '"x"', "null", "rm -rf"]) {
    const answer = anthropicMessages.answer(turnOf([call("Bash", raw)]), context);
    assert.deepEqual(answer.content, [{ type: "text", text: raw }]);
    assert.equal(answer.stop_reason, "end_turn");
    assert.deepEqual(answer.alidade, { malformed_tool_calls: [{ index: 0, name: "Bash" }] });
  }
  const mixed = anthropicMessages.answer(turnOf([{ type: "text", text: "a" }, call("Bash", "{"), call("Read", '{"x":1}')]), context);
  assert.deepEqual(
    (mixed.content as { type: string }[]).map((block) => block.type),
    ["text", "text", "tool_use"],
  );
  assert.equal(mixed.stop_reason, "tool_use");
  assert.deepEqual(mixed.alidade, { malformed_tool_calls: [{ index: 1, name: "Bash" }] });
});

test("arguments stream as they were sampled, and numbers keep their text without streaming too", () => {
  const raw = '{ "n": 1.0, "big":12345678901234567890, "e": 1e2, "text": "1.0" }';
  const writer = anthropicMessages.writer(context);
  const deltas = writer
    .event({ type: "tool-call", id: "x", name: "f", arguments: raw })
    .map((frame) => JSON.parse(frame.data) as { delta?: { partial_json?: string } })
    .flatMap((event) => event.delta?.partial_json ?? []);
  assert.equal(deltas.join(""), raw);
  const body = JSON.stringify(anthropicMessages.answer(turnOf([call("f", raw)]), context));
  assert.ok(body.includes('"input":{"n":1.0,"big":12345678901234567890,"e":1e2,"text":"1.0"}'), body);
});

test("the stream has the API's whole order of events", () => {
  const writer = anthropicMessages.writer(context);
  const frames = [
    ...writer.open(),
    ...writer.event({ type: "reasoning-delta", text: "r" }),
    ...writer.keepAlive(),
    ...writer.event({ type: "text-delta", text: "a" }),
    ...writer.event({ type: "tool-call", id: "c0", name: "f", arguments: '{"a":1}' }),
    ...writer.event({ type: "end", finish_reason: "tool_calls", stop: null, usage: turnOf([]).usage }),
  ];
  const events = frames.map((frame) => JSON.parse(frame.data) as { type: string; index?: number; delta?: { type?: string } });
  assert.deepEqual(
    frames.map((frame) => frame.event),
    events.map((event) => event.type),
  );
  assert.deepEqual(
    events.map((event) => [event.type, event.index, event.delta?.type].filter((part) => part !== undefined).join(" ")),
    [
      "message_start",
      "content_block_start 0",
      "content_block_delta 0 thinking_delta",
      "ping",
      "content_block_delta 0 signature_delta",
      "content_block_stop 0",
      "content_block_start 1",
      "content_block_delta 1 text_delta",
      "content_block_stop 1",
      "content_block_start 2",
      "content_block_delta 2 input_json_delta",
      "content_block_stop 2",
      "message_delta",
      "message_stop",
    ],
  );
});

test("a prompt that is too long is said in the words that make a client compact", () => {
  const said = (message: string): string => {
    const { body } = anthropicMessages.error(new AlidadeError("context_length_exceeded", message));
    return (body as { error: { message: string } }).error.message;
  };
  const cases: [string, string][] = [
    [
      "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).",
      "prompt is too long: 5000 tokens > 4096 maximum",
    ],
    [
      "You passed 5001 input tokens and requested 1 output tokens. However, the model's context length is only 4096 tokens.",
      "prompt is too long: 5001 tokens > 4096 maximum",
    ],
    ["prompt is too long: 9 tokens > 8 maximum", "prompt is too long: 9 tokens > 8 maximum"],
    ["It does not fit.", "prompt is too long: It does not fit."],
  ];
  for (const [message, wanted] of cases) assert.equal(said(message), wanted);
});

test("Claude Code's agents and side calls are labelled", () => {
  const labels = (headers: Record<string, string>, body: Record<string, unknown>) => {
    const { agent, request_class } = anthropicMessages.labels(headers, { messages: [hello], tools: [{ name: "f" }], ...body });
    return `${agent} ${request_class}`;
  };
  const ask = "CRITICAL: Respond with TEXT ONLY. Write <analysis> and then <summary>.";
  assert.equal(labels({ "x-claude-code-session-id": "s" }, {}), "main main");
  assert.equal(
    labels({ "x-claude-code-session-id": "s", "x-claude-code-agent-id": "a0123456789abcdef" }, {}),
    "a0123456789abcdef sub_agent",
  );
  assert.equal(
    labels(
      {},
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "x" },
              { type: "text", text: ask },
            ],
          },
        ],
      },
    ),
    "main compaction",
  );
  assert.equal(labels({}, { messages: [{ role: "user", content: "quota" }], max_tokens: 1, tools: [] }), "main quota");
  const topic = [{ type: "text", text: "Analyze if this message indicates a new conversation topic." }];
  assert.equal(labels({}, { system: topic, tools: [] }), "main topic");
});

test("a field of the body under a name of ours says nothing", () => {
  const ours = { deferred_tools: ["f"] };
  assert.deepEqual(parse({ messages: [{ role: "user", content: "Hi" }], ...ours, service_tier: "auto" }).native, { service_tier: "auto" });
});
