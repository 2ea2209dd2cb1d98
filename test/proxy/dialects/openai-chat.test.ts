import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import type { Message, NeutralRequest } from "../../../base/schema/message.ts";
import { toChatMessages } from "../../../engines/chat/messages.ts";
import { toChatMessages as toRows } from "../../../exporters/shapes/chat-messages.ts";
import { openaiChat } from "../../../proxy/dialects/openai-chat.ts";
import { isSameMessage } from "../../../proxy/session/call.ts";

const hello = [{ role: "user", content: "Hi" }];
const parse = (fields: Record<string, unknown>): NeutralRequest => openaiChat.parse({ model: "m", messages: hello, ...fields }, {});
const messagesOf = (messages: unknown[]): Message[] => parse({ messages }).messages;
const read = { type: "function", function: { name: "read", parameters: { type: "object", properties: { path: { type: "string" } } } } };

test("Pi's second request comes through whole", () => {
  const request = parse({
    stream: true,
    stream_options: { include_usage: true },
    store: false,
    max_completion_tokens: 8192,
    reasoning_effort: "medium",
    tools: [{ ...read, function: { ...read.function, description: "Reads.", strict: false } }],
    messages: [
      { role: "developer", content: "You are an expert coding assistant." },
      { role: "user", content: [{ type: "text", text: "Fix it" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "calla0t0", type: "function", function: { name: "read", arguments: '{"path":"a"}' } }],
        reasoning_content: " think ",
      },
      { role: "tool", content: "text of a", tool_call_id: "calla0t0" },
    ],
  });
  assert.deepEqual(request, {
    model: "m",
    messages: [
      { role: "developer", parts: [{ type: "text", text: "You are an expert coding assistant." }] },
      { role: "user", parts: [{ type: "text", text: "Fix it" }] },
      {
        role: "assistant",
        parts: [
          { type: "reasoning", text: " think " },
          { type: "tool_call", id: "calla0t0", name: "read", arguments: '{"path":"a"}', kind: "function" },
        ],
      },
      {
        role: "tool",
        parts: [{ type: "tool_result", call_id: "calla0t0", content: [{ type: "text", text: "text of a" }], is_error: false }],
      },
    ],
    tools: [{ name: "read", description: "Reads.", parameters: read.function.parameters, kind: "function", strict: false }],
    tool_choice: null,
    sampling: { max_tokens: 8192, reasoning_effort: "medium" },
    stream: true,
    native: { stream_options: { include_usage: true }, store: false },
  });
});

test("null, absent, empty and list content say the same", () => {
  for (const content of [null, undefined, "", [], [{ type: "text", text: "" }]])
    assert.deepEqual(messagesOf([{ role: "user", content }]), [{ role: "user", parts: [] }]);
  assert.deepEqual(messagesOf([{ role: "user", content: "a" }]), messagesOf([{ role: "user", content: [{ type: "text", text: "a" }] }]));
});

test("system and developer turns stay where they stand", () => {
  const roles = ["system", "user", "developer", "user", "system"];
  assert.deepEqual(
    messagesOf(roles.map((role) => ({ role, content: "x" }))).map((message) => message.role),
    roles,
  );
});

test("unknown keys are harmless in messages and calls", () => {
  const plain = [
    { role: "assistant", content: "a", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
  ];
  const noisy = [
    {
      ...plain[0],
      provider_specific_fields: { refusal: null },
      refusal: null,
      function_call: null,
      audio: null,
      tool_calls: [{ index: 0, ...plain[0]?.tool_calls[0], extra: 1 }],
    },
  ];
  assert.deepEqual(messagesOf(noisy), messagesOf(plain));
});

test("a tool message finds its call without tool_call_id", () => {
  const calls = ["a", "b"].map((id) => ({ id, type: "function", function: { name: `f${id}`, arguments: "{}" } }));
  const answered = (results: unknown[]): unknown[] =>
    messagesOf([{ role: "assistant", content: null, tool_calls: calls }, ...results])
      .slice(1)
      .map((message) => message.parts[0]?.type === "tool_result" && message.parts[0].call_id);
  assert.deepEqual(
    answered([
      { role: "tool", content: "1", id: "b" },
      { role: "tool", content: "2", id: "a" },
    ]),
    ["b", "a"],
  );
  assert.deepEqual(
    answered([
      { role: "tool", content: "1", extra: { function_id: "b" } },
      { role: "tool", content: "2" },
    ]),
    ["b", "a"],
  );
  assert.deepEqual(
    answered([
      { role: "tool", name: "fb", content: "1" },
      { role: "tool", content: "2" },
    ]),
    ["b", "a"],
  );
  assert.deepEqual(answered([{ role: "tool", content: "1", tool_call_id: "elsewhere" }]), ["elsewhere"]);
});

test("arguments stay the string that was sent, malformed or not", () => {
  for (const raw of ['{ "a" :  "\\u00e9" ,"n":1.0 }', '{"a":', "", "null"]) {
    const [message] = messagesOf([{ role: "assistant", tool_calls: [{ id: "c", function: { name: "f", arguments: raw } }] }]);
    assert.equal(message?.parts[0]?.type === "tool_call" && message.parts[0].arguments, raw);
  }
});

test("images keep their place between texts", () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } };
  assert.deepEqual(messagesOf([{ role: "user", content: [{ type: "text", text: "a" }, image, { type: "text", text: "b" }] }])[0]?.parts, [
    { type: "text", text: "a" },
    { type: "image", url: "data:image/png;base64,AA==", detail: "low" },
    { type: "text", text: "b" },
  ]);
});

test("the harness gets reasoning under the name that it uses", () => {
  const context = { call_id: "callabcdefghij0123456789", created: 1, model: "m", custom_tools: new Set<string>() };
  const turn = {
    message: { role: "assistant" as const, parts: [{ type: "reasoning" as const, text: "r" }] },
    finish_reason: "stop" as const,
    stop: null,
    usage: { prompt_tokens: 1, cached_tokens: null, sampled_tokens: 1, reasoning_tokens: null },
  };
  for (const field of ["reasoning", "reasoning_content"]) {
    const { native } = parse({ messages: [...hello, { role: "assistant", content: "a", [field]: "x" }, ...hello] });
    const answer = JSON.stringify(openaiChat.answer(turn, { ...context, native }));
    assert.match(answer, new RegExp(`"${field}":"r"`));
  }
});

test("usage has a chunk of its own only where it was asked for", () => {
  const context = { call_id: "callabcdefghij0123456789", created: 1, model: "m", custom_tools: new Set<string>() };
  const usage = { prompt_tokens: 3, cached_tokens: null, sampled_tokens: 2, reasoning_tokens: null };
  const end = { type: "end" as const, finish_reason: "stop" as const, stop: null, usage };
  const chunks = (native: Record<string, unknown>): string[] =>
    openaiChat
      .writer({ ...context, native })
      .event(end)
      .map((frame) => frame.data);
  assert.equal(chunks({}).filter((data) => data.includes('"usage"')).length, 0);
  const asked = chunks({ stream_options: { include_usage: true } });
  assert.match(asked.at(-2) ?? "", /"choices":\[\],"usage":\{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5\}/);
  assert.equal(asked.at(-1), "[DONE]");
});

test("sampling parameters keep the engine's names, extras too", () => {
  const { sampling, native } = parse({
    temperature: 0,
    top_p: 0.9,
    top_k: 20,
    stop: "END",
    seed: 7,
    logit_bias: { "5": -1 },
    structured_outputs: { choice: ["a", "b"] },
    chat_template_kwargs: { enable_thinking: false },
    response_format: { type: "json_object" },
    presence_penalty: null,
    user: "me",
  });
  assert.deepEqual(sampling, {
    temperature: 0,
    top_p: 0.9,
    top_k: 20,
    stop: ["END"],
    seed: 7,
    logit_bias: { "5": -1 },
    structured_outputs: { choice: ["a", "b"] },
    chat_template_kwargs: { enable_thinking: false },
    response_format: { type: "json_object" },
  });
  assert.deepEqual(native, { user: "me" });
});

test("a history with calls of legacy functions is understood", () => {
  const request = parse({
    messages: [
      ...hello,
      { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
      { role: "function", name: "f", content: "ok" },
    ],
  });
  assert.deepEqual(request.messages[1]?.parts, [{ type: "tool_call", id: "", name: "f", arguments: "{}", kind: "function" }]);
  assert.deepEqual(request.messages[2], {
    role: "tool",
    parts: [{ type: "tool_result", call_id: "", content: [{ type: "text", text: "ok" }], is_error: false }],
  });
});

test("custom tools are shown as functions, hosted ones are named and left out", () => {
  const { tools, omitted } = parse({
    tools: [
      {
        type: "custom",
        custom: {
          name: "patch",
          description: "Patches.",
          format: { type: "grammar", grammar: { syntax: "lark", definition: "start: x" } },
        },
      },
      { type: "web_search" },
    ],
    web_search_options: {},
  });
  assert.deepEqual(tools, [
    {
      name: "patch",
      description: "Patches.",
      parameters: {
        type: "object",
        properties: { input: { type: "string", description: "Text in this lark grammar:\nstart: x" } },
        required: ["input"],
      },
      kind: "custom",
    },
  ]);
  assert.deepEqual(omitted, ["tool web_search"]);
});

test("tool choice is understood in every form, or refused", () => {
  const tools = [read, { type: "function", function: { name: "write" } }];
  assert.equal(parse({ tools, tool_choice: "required" }).tool_choice, "required");
  assert.deepEqual(parse({ tools, tool_choice: { type: "function", function: { name: "read" } } }).tool_choice, { name: "read" });
  const allowed = parse({
    tools,
    tool_choice: { type: "allowed_tools", allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "write" } }] } },
  });
  assert.equal(allowed.tool_choice, "required");
  assert.deepEqual(
    allowed.tools.map((tool) => tool.name),
    ["write"],
  );
  assert.throws(() => parse({ tools, tool_choice: { type: "function", function: { name: "nope" } } }), { param: "tool_choice" });
  assert.throws(() => parse({ tools, tool_choice: "sometimes" }), { param: "tool_choice" });
});

const refused: [Record<string, unknown>, string][] = [
  [{ best_of: 3 }, "best_of"],
  [{ use_beam_search: true }, "use_beam_search"],
  [{ continue_final_message: true }, "continue_final_message"],
  [{ add_generation_prompt: false }, "add_generation_prompt"],
  [{ modalities: ["text", "audio"] }, "modalities"],
  [{ functions: [{ name: "f", parameters: { type: "object" } }], function_call: "auto" }, "functions"],
  [{ function_call: { name: "f" } }, "function_call"],
  [{ max_tokens: 0 }, "max_tokens"],
  [{ max_tokens: 1.5 }, "max_tokens"],
  [{ stop: [1] }, "stop[0]"],
  [{ stop: { a: 1 } }, "stop"],
  [{ logit_bias: { a: "b" } }, "logit_bias.a"],
  [{ tools: [{ type: "function" }] }, "tools[0].function"],
  [{ tools: [{ type: "function", function: { name: "" } }] }, "tools[0].function.name"],
  [{ messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }] }, "messages[0].content[0].image_url.url"],
  [{ messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] }, "messages[0].content[0].type"],
  [{ messages: [{ role: "assistant", tool_calls: [{ id: "x" }] }] }, "messages[0].tool_calls[0].function"],
  [{ messages: [{ role: "assistant", tool_calls: 5 }] }, "messages[0].tool_calls"],
];
for (const [fields, param] of refused) {
  test(`${JSON.stringify(fields)} is refused at ${param}`, () => {
    assert.throws(
      () => parse(fields),
      (error) => error instanceof AlidadeError && error.param === param && error.message.startsWith(param),
    );
  });
}

test("harmless fields pass, with n of one and nulls", () => {
  parse({
    n: 1,
    logprobs: null,
    metadata: { a: "b" },
    service_tier: "auto",
    prediction: null,
    functions: [],
    function_call: null,
    unheard_of: { deep: [1] },
    modalities: ["text"],
  });
});

test("labels come from headers first", () => {
  const labels = (headers: Record<string, string>, body: Record<string, unknown> = {}) => {
    const { agent, request_class } = openaiChat.labels(headers, { messages: hello, tools: [read], ...body });
    return `${agent} ${request_class}`;
  };
  assert.equal(labels({}), "main main");
  assert.equal(labels({ "x-session-id": "ses_1" }), "main main");
  assert.equal(labels({ "x-session-id": "ses_2", "x-parent-session-id": "ses_1" }), "ses_2 sub_agent");
  assert.equal(labels({ "x-interaction-type": "conversation-subagent" }), "sub_agent sub_agent");
  assert.equal(labels({ "x-interaction-type": "conversation-compaction" }), "main compaction");
  const title = { messages: [{ role: "system", content: "You are a title generator. You output ONLY a thread title." }, ...hello] };
  assert.equal(labels({}, { ...title, tools: [] }), "main title");
  const memory = { messages: [{ role: "system", content: "You are the managed memory extraction subagent." }, ...hello] };
  assert.equal(labels({}, memory), "main memory");
  assert.equal(labels({}, title), "main main", "a request with tools is a turn, whatever its prompt says");
});

test("labels survive a body of any shape", () => {
  for (const messages of [undefined, null, 5, "x", [null], [[]], [{ role: 5, content: { a: 1 } }]])
    assert.equal(openaiChat.labels({}, { messages }).agent, "main");
});

test("a field of the body under a name of ours says nothing", () => {
  const { native } = parse({ messages: [{ role: "user", content: "Hi" }], reasoning_field: "reasoning", user: "u" });
  assert.deepEqual(native, { user: "u" });
});

test("who speaks within a role reaches the model, and is a part of what was said", () => {
  const sent = [
    { role: "system", name: "policy", content: "be good" },
    { role: "user", name: "anna", content: "hi" },
    { role: "user", name: "", content: "hi" },
    { role: "user", content: [{ type: "text", text: "hi" }], name: null },
  ];
  const messages = messagesOf(sent);
  const told = toChatMessages(messages);
  assert.deepEqual(
    told.map(({ name, content }) => [name, content]),
    [
      ["policy", "be good"],
      ["anna", "hi"],
      [undefined, "hi"],
      [undefined, "hi"],
    ],
  );
  assert.deepEqual(messages.flatMap(toRows), told);
  const [, named, unnamed, plain] = messages as [Message, Message, Message, Message];
  assert.deepEqual([isSameMessage(named, unnamed), isSameMessage(unnamed, plain)], [false, true]);
});
