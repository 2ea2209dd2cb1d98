import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import type { Message, NeutralRequest, Part, Turn } from "../../../base/schema/message.ts";
import { type AnswerContext, toEvents } from "../../../proxy/dialects/dialect.ts";
import { openaiResponses } from "../../../proxy/dialects/openai-responses.ts";

const one = "callaaaaaaaaaaaaaaaaaaaa";
const two = "callbbbbbbbbbbbbbbbbbbbb";
const hello = { role: "user", content: "Hi" };
const parse = (fields: Record<string, unknown>): NeutralRequest => openaiResponses.parse({ model: "m", input: "Hi", ...fields }, {});
const messagesOf = (input: unknown[]): Message[] => parse({ input }).messages;
const textItem = (id: string, text: string) => ({
  type: "message",
  id,
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});
const callItem = (id: string, callId: string) => ({
  type: "function_call",
  id,
  call_id: callId,
  name: "f",
  arguments: "{}",
  status: "completed",
});
const output = (callId: string) => ({ type: "function_call_output", call_id: callId, output: "ok" });

const context = (native: Record<string, unknown>, custom: string[] = []): AnswerContext => ({
  call_id: one,
  created: 1,
  model: "m",
  native,
  custom_tools: new Set(custom),
});
const turnOf = (parts: Part[]): Turn => ({
  message: { role: "assistant", parts },
  finish_reason: "tool_calls",
  stop: null,
  usage: { prompt_tokens: 1, cached_tokens: null, sampled_tokens: 1, reasoning_tokens: null },
});

const spawnAgents = {
  type: "namespace",
  name: "multi_agent_v1",
  description: "Agents.",
  tools: [{ type: "function", name: "spawn_agent", description: "Spawns.", parameters: { type: "object" }, strict: false }],
};

test("Codex's request comes through whole", () => {
  const request = parse({
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "You are Codex." }] },
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Skills." }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "<environment_context>" }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "Fix it" }] },
      {
        type: "reasoning",
        id: `rs_${one}i0`,
        summary: [],
        content: [{ type: "reasoning_text", text: "hm" }],
        encrypted_content: `ali1.${one}`,
      },
      textItem(`msg_${one}i1`, "Sure."),
      { type: "function_call", id: `fc_${one}i2`, call_id: `${one}t0`, name: "exec_command", arguments: '{ "cmd": "ls" }' },
      { type: "function_call_output", id: "fco_1", call_id: `${one}t0`, output: "Chunk ID: 29fa9c\na.txt" },
    ],
    tools: [
      { type: "function", name: "exec_command", description: "Runs.", parameters: { type: "object" }, strict: false },
      spawnAgents,
      { type: "web_search", external_web_access: true },
    ],
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning: { summary: "auto", effort: "high" },
    store: false,
    stream: true,
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "uuid",
    client_metadata: { b: 1, a: 2 },
  });
  assert.deepEqual(
    request.messages.map((message) => message.role),
    ["developer", "developer", "user", "user", "assistant", "tool"],
  );
  assert.deepEqual(request.messages[4]?.parts, [
    { type: "reasoning", text: "hm", carrier: `ali1.${one}` },
    { type: "text", text: "Sure." },
    { type: "tool_call", id: `${one}t0`, name: "exec_command", arguments: '{ "cmd": "ls" }', kind: "function" },
  ]);
  assert.deepEqual(
    request.tools.map((tool) => tool.name),
    ["exec_command", "multi_agent_v1__spawn_agent"],
  );
  assert.deepEqual(request.omitted, ["tool web_search"]);
  assert.deepEqual(request.sampling, { parallel_tool_calls: true, reasoning_effort: "high" });
  assert.equal(request.stream, true);
});

test("the items of one turn are one message, those of two turns are two", () => {
  const roles = (items: unknown[]) => messagesOf(items).map((message) => `${message.role}${message.parts.length}`);
  assert.deepEqual(roles([hello, textItem("msg_x", "a"), callItem("fc_y", "c1"), callItem("fc_z", "c2"), output("c1"), output("c2")]), [
    "user1",
    "assistant3",
    "tool1",
    "tool1",
  ]);
  assert.deepEqual(roles([hello, textItem(`msg_${one}i0`, "a"), textItem(`msg_${two}i0`, "b")]), ["user1", "assistant1", "assistant1"]);
  assert.deepEqual(
    roles([hello, textItem(`msg_${one}i0`, "a"), callItem(`fc_${one}i1`, "c"), output("c"), textItem(`msg_${two}i0`, "b")]),
    ["user1", "assistant2", "tool1", "assistant1"],
  );
});

test("what we said comes back as what was sampled", () => {
  const parts: Part[] = [
    { type: "reasoning", text: "r" },
    { type: "text", text: "a" },
    { type: "tool_call", id: "engine-1", name: "f", arguments: '{ "x":1 }', kind: "function" },
    { type: "tool_call", id: "engine-2", name: "patch", arguments: '{"input":"*** x"}', kind: "function" },
  ];
  const answer = openaiResponses.answer(turnOf(parts), context({}, ["patch"]));
  assert.deepEqual(messagesOf([hello, ...(answer.output as unknown[])])[1]?.parts, [
    { type: "reasoning", text: "r", carrier: `ali1.${one}` },
    { type: "text", text: "a" },
    { type: "tool_call", id: `${one}t0`, name: "f", arguments: '{ "x":1 }', kind: "function" },
    { type: "tool_call", id: `${one}t1`, name: "patch", arguments: "*** x", kind: "custom" },
  ]);
});

test("a namespaced tool goes out with its namespace, and its history says the same name with tools or without", () => {
  const { native } = parse({ tools: [spawnAgents] });
  const call: Part = { type: "tool_call", id: "x", name: "multi_agent_v1__spawn_agent", arguments: "{}", kind: "function" };
  const answer = openaiResponses.answer(turnOf([call]), context(native));
  const [item] = answer.output as Record<string, unknown>[];
  assert.equal(item?.name, "spawn_agent");
  assert.equal(item?.namespace, "multi_agent_v1");
  for (const tools of [[spawnAgents], []]) {
    const message: Message | undefined = parse({ tools, input: [hello, item] }).messages[1];
    assert.equal(message?.parts[0]?.type === "tool_call" && message.parts[0].name, "multi_agent_v1__spawn_agent");
  }
});

const builtins = [{ type: "local_shell" }, { type: "shell", environment: { type: "local" } }, { type: "apply_patch" }];

test("built-in tools are functions to the model and go out, and come back, in their own form", () => {
  const { tools, native } = parse({ tools: builtins, tool_choice: { type: "shell" } });
  assert.deepEqual(
    tools.map((tool) => tool.name),
    ["local_shell", "shell", "apply_patch"],
  );
  const sampled: [string, string, Record<string, unknown>][] = [
    [
      "local_shell",
      '{"command": ["ls","-l"], "timeout_ms": 5}',
      { type: "local_shell_call", action: { type: "exec", env: {}, command: ["ls", "-l"], timeout_ms: 5 } },
    ],
    [
      "shell",
      '{"commands":["ls"]}',
      { type: "shell_call", action: { timeout_ms: null, max_output_length: null, commands: ["ls"] }, environment: null },
    ],
    ["apply_patch", '{"type":"delete_file","path":"a"}', { type: "apply_patch_call", operation: { type: "delete_file", path: "a" } }],
  ];
  const calls = sampled.map(
    ([name, rawArguments]): Part => ({
      type: "tool_call",
      id: "x",
      name,
      arguments: rawArguments,
      kind: "function",
    }),
  );
  const items = openaiResponses.answer(turnOf(calls), context(native)).output as Record<string, unknown>[];
  for (const [index, [, , form]] of sampled.entries()) {
    const { id, call_id, status, ...rest } = items[index] ?? {};
    assert.deepEqual(rest, form);
    assert.deepEqual([call_id, status], [`${one}t${index}`, "completed"]);
    assert.match(String(id), new RegExp(`^(lsh|sh|apc)_${one}i${index}$`));
  }
  // In a request without tools (a compaction) too.
  for (const offered of [builtins, []]) {
    const [, message] = parse({ input: [hello, ...items], tools: offered }).messages;
    assert.deepEqual(
      message?.parts.map((part) => part.type === "tool_call" && [part.name, JSON.parse(part.arguments)]),
      sampled.map(([name, rawArguments]) => [name, JSON.parse(rawArguments)]),
    );
  }
});

test("a built-in tool's call that does not fit its form goes out as the function call that was sampled", () => {
  const { native } = parse({ tools: builtins });
  for (const [name, rawArguments] of [
    ["local_shell", '{"command": "ls"}'],
    ["shell", '{"commands": ["ls'],
    ["apply_patch", '{"type":"rename","path":"a"}'],
  ] as const) {
    const call: Part = { type: "tool_call", id: "x", name, arguments: rawArguments, kind: "function" };
    const [item] = openaiResponses.answer(turnOf([call]), context(native)).output as Record<string, unknown>[];
    assert.deepEqual([item?.type, item?.name, item?.arguments], ["function_call", name, rawArguments]);
  }
});

test("what built-in tools answered is what the model reads", () => {
  const messages = messagesOf([
    hello,
    { type: "local_shell_call", id: "lsh_1", call_id: "c1", action: { type: "exec", command: ["ls"], env: {} } },
    { type: "local_shell_call_output", id: "c1", output: "a.txt" },
    { type: "shell_call", id: "sh_1", call_id: "c2", action: { commands: ["a", "b"] } },
    {
      type: "shell_call_output",
      call_id: "c2",
      output: [
        { stdout: "out", stderr: "err", outcome: { type: "exit", exit_code: 1 } },
        { stdout: "", stderr: "", outcome: { type: "timeout" } },
      ],
    },
    { type: "apply_patch_call", id: "apc_1", call_id: "c3", operation: { type: "delete_file", path: "a" } },
    { type: "apply_patch_call_output", call_id: "c3", status: "failed", output: "no such file" },
  ]);
  const results = messages.flatMap((message) => message.parts.filter((part) => part.type === "tool_result"));
  assert.deepEqual(
    results.map((part) => [part.call_id, part.content.map((piece) => piece.type === "text" && piece.text).join(), part.is_error]),
    [
      ["c1", "a.txt", false],
      ["c2", "out\nerr\nexit code 1\ntimed out", false],
      ["c3", "no such file", true],
    ],
  );
});

test("a made name takes no tool's name", () => {
  const plain = { type: "function", name: "multi_agent_v1__spawn_agent", parameters: {} };
  for (const tools of [
    [plain, spawnAgents],
    [spawnAgents, plain],
    [spawnAgents, spawnAgents],
  ]) {
    const names = parse({ tools }).tools.map((tool) => tool.name);
    assert.equal(new Set(names).size, 2, names.join());
  }
  const { native, messages } = parse({
    tools: [plain, spawnAgents],
    input: [hello, { ...callItem("fc_1", "c"), name: "spawn_agent", namespace: "multi_agent_v1" }],
  });
  assert.equal(messages[1]?.parts[0]?.type === "tool_call" && messages[1].parts[0].name, "multi_agent_v1__spawn_agent__2");
  const call: Part = { type: "tool_call", id: "x", name: "multi_agent_v1__spawn_agent", arguments: "{}", kind: "function" };
  const [item] = openaiResponses.answer(turnOf([call]), context(native)).output as Record<string, unknown>[];
  assert.equal(item?.name, "multi_agent_v1__spawn_agent");
  assert.equal(item?.namespace, undefined);
});

test("tools hidden in an input item are tools", () => {
  const request = parse({
    input: [{ type: "additional_tools", tools: [{ type: "custom", name: "exec", format: { type: "text" } }] }, hello],
  });
  assert.deepEqual(
    request.tools.map((tool) => `${tool.name} ${tool.kind}`),
    ["exec custom"],
  );
  assert.equal(request.messages.length, 1);
});

test("what hosted tools did is history: each item is a call and its result", () => {
  const items = [
    {
      type: "web_search_call",
      id: "ws_1",
      status: "completed",
      action: { type: "search", query: "ducks", sources: [{ url: "https://a" }] },
    },
    { type: "file_search_call", id: "fs_1", queries: ["q"], results: [{ filename: "a.txt", text: "A" }] },
    {
      type: "code_interpreter_call",
      id: "ci_1",
      code: "1 + 1",
      outputs: [
        { type: "logs", logs: "2" },
        { type: "image", url: "data:image/png;base64,AA==" },
      ],
    },
    { type: "image_generation_call", id: "ig_1", result: "AA==", output_format: "webp" },
    { type: "mcp_call", id: "mcp_1", server_label: "docs", name: "find", arguments: '{"a": 1}', output: null, error: "gone" },
    { type: "mcp_list_tools", server_label: "docs", tools: [{ name: "find" }] },
  ];
  const { messages, omitted } = parse({ input: [hello, ...items, textItem("msg_1", "a")] });
  assert.equal(omitted, undefined);
  assert.deepEqual(
    messages.map(({ role, parts }) => [
      role,
      ...parts.map((part) => (part.type === "tool_call" ? `${part.id} ${part.name} ${part.arguments}` : part.type)),
    ]),
    [
      ["user", "text"],
      ["assistant", 'ws_1 web_search {"type":"search","query":"ducks"}'],
      ["tool", "tool_result"],
      ["assistant", 'fs_1 file_search {"queries":["q"]}'],
      ["tool", "tool_result"],
      ["assistant", 'ci_1 code_interpreter {"code":"1 + 1"}'],
      ["tool", "tool_result"],
      ["assistant", "ig_1 image_generation {}"],
      ["tool", "tool_result"],
      ["assistant", 'mcp_1 docs__find {"a": 1}'],
      ["tool", "tool_result"],
      ["assistant", 'hosted6 mcp_list_tools {"server_label":"docs"}'],
      ["tool", "tool_result"],
      ["assistant", "text"],
    ],
  );
  assert.deepEqual(
    messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool_result" ? [[part.call_id, part.is_error, part.content]] : [])),
    ),
    [
      ["ws_1", false, [{ type: "text", text: '[{"url":"https://a"}]' }]],
      ["fs_1", false, [{ type: "text", text: '[{"filename":"a.txt","text":"A"}]' }]],
      [
        "ci_1",
        false,
        [
          { type: "text", text: "2" },
          { type: "image", url: "data:image/png;base64,AA==" },
        ],
      ],
      ["ig_1", false, [{ type: "image", url: "data:image/webp;base64,AA==" }]],
      ["mcp_1", true, [{ type: "text", text: "gone" }]],
      ["hosted6", false, [{ type: "text", text: '[{"name":"find"}]' }]],
    ],
  );
});

test("a summary stands for reasoning only where there is no text", () => {
  const reasoning = (fields: Record<string, unknown>): unknown =>
    messagesOf([hello, { type: "reasoning", id: "rs_1", ...fields }])[1]?.parts[0];
  const summary = [{ type: "summary_text", text: "s" }];
  assert.deepEqual(reasoning({ summary, content: [{ type: "reasoning_text", text: "t" }] }), { type: "reasoning", text: "t" });
  assert.deepEqual(reasoning({ summary, content: null }), { type: "reasoning", text: "s" });
  assert.deepEqual(reasoning({ summary: [], encrypted_content: "opaque" }), { type: "reasoning", text: "", carrier: "opaque" });
});

test("tool output may be text or parts with images", () => {
  const [, , message] = messagesOf([
    hello,
    callItem("fc_1", "c"),
    {
      type: "function_call_output",
      call_id: "c",
      output: [
        { type: "input_text", text: "see" },
        { type: "input_image", image_url: "data:image/png;base64,AA==" },
      ],
    },
  ]);
  assert.deepEqual(message?.parts[0], {
    type: "tool_result",
    call_id: "c",
    content: [
      { type: "text", text: "see" },
      { type: "image", url: "data:image/png;base64,AA==" },
    ],
    is_error: false,
  });
});

test("instructions come first, and structured output gets the shape that engines take", () => {
  const request = parse({
    instructions: "Be brief.",
    max_output_tokens: 5,
    text: { format: { type: "json_schema", name: "a", schema: { type: "object" }, strict: true }, verbosity: "low" },
  });
  assert.deepEqual(request.messages[0], { role: "system", parts: [{ type: "text", text: "Be brief." }] });
  assert.deepEqual(request.sampling, {
    max_tokens: 5,
    response_format: { type: "json_schema", json_schema: { name: "a", schema: { type: "object" }, strict: true } },
  });
});

const refused: [Record<string, unknown>, string][] = [
  [{ previous_response_id: "resp_1" }, "previous_response_id"],
  [{ conversation: "conv_1" }, "conversation"],
  [{ prompt: { id: "p" } }, "prompt"],
  [{ previous_input_messages: [{ role: "user" }] }, "previous_input_messages"],
  [{ background: true }, "background"],
  [{ input: [{ type: "item_reference", id: "msg_1" }] }, "input[0]"],
  [{ input: [{ type: "function_call", call_id: "c", name: "f" }] }, "input[0].arguments"],
  [{ input: [{ type: "function_call_output", output: "x" }] }, "input[0].call_id"],
  [{ input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] }, "input[0].content[0].type"],
  [{ tools: [{ type: "custom" }] }, "tools[0].name"],
  [{ tools: [{ type: "namespace", name: "n" }] }, "tools[0].tools"],
  [{ tool_choice: { type: "web_search_preview" } }, "tool_choice"],
  [{ tool_choice: { type: "function", name: "nope" } }, "tool_choice"],
  [{ max_output_tokens: -1 }, "max_output_tokens"],
];
for (const [fields, param] of refused) {
  test(`${JSON.stringify(fields)} is refused at ${param}`, () => {
    assert.throws(
      () => parse(fields),
      (error) => error instanceof AlidadeError && error.param === param,
    );
  });
}

test("a field of the body under a name of ours says nothing", () => {
  const names = ["has_instructions", "conversation_id", "builtin_tools", "namespaced_tools"];
  const { native } = parse({ ...Object.fromEntries(names.map((name) => [name, true])), metadata: { a: "b" } });
  assert.deepEqual(native, { metadata: { a: "b" } });
});

test("the stream has the API's whole order of events", () => {
  const writer = openaiResponses.writer(context({}, ["patch"]));
  const frames = [
    ...writer.open(),
    ...writer.event({ type: "reasoning-delta", text: "r" }),
    ...writer.event({ type: "text-delta", text: "a" }),
    ...writer.event({ type: "tool-call", id: "c0", name: "f", arguments: "{}" }),
    ...writer.event({ type: "tool-call", id: "c1", name: "patch", arguments: '{"input":"x"}' }),
    ...writer.event({ type: "end", finish_reason: "tool_calls", stop: null, usage: turnOf([]).usage }),
  ];
  const events = frames.map((frame) => JSON.parse(frame.data) as Record<string, unknown>);
  assert.deepEqual(
    frames.map((frame) => frame.event),
    events.map((event) => event.type),
  );
  const item = ["response.output_item.added", "response.content_part.added"];
  const done = ["response.content_part.done", "response.output_item.done"];
  assert.deepEqual(
    events.map((event) => event.type),
    [
      "response.created",
      "response.in_progress",
      ...item,
      "response.reasoning_text.delta",
      "response.reasoning_text.done",
      ...done,
      ...item,
      "response.output_text.delta",
      "response.output_text.done",
      ...done,
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.done",
      "response.output_item.done",
      "response.completed",
    ],
  );
  assert.deepEqual(
    events.map((event) => event.sequence_number),
    [...events.keys()],
  );
  let open: unknown;
  for (const event of events) {
    const added = event.item as { id: string } | undefined;
    if (event.type === "response.output_item.added") open = added?.id;
    if (event.item_id !== undefined) assert.equal(event.item_id, open);
    if (event.type === "response.output_item.done") assert.equal(added?.id, open);
  }
  const [last] = events.slice(-1) as [{ response: { output: { id: string }[] } }];
  assert.deepEqual(
    last.response.output.map((entry) => entry.id),
    [`rs_${one}i0`, `msg_${one}i1`, `fc_${one}i2`, `ctc_${one}i3`],
  );
});

test("a call that was cut off is incomplete, and what stands before it is completed, streamed and whole", () => {
  const call = (rawArguments: string): Part => ({ type: "tool_call", id: "x", name: "f", arguments: rawArguments, kind: "function" });
  const statusesOf = (items: unknown[]) => items.map((item) => (item as { status: string }).status);
  const cases: [parts: Part[], statuses: string[]][] = [
    [
      [call("{}"), call('{"cmd":"rm -rf /tmp/x')],
      ["completed", "incomplete"],
    ],
    [
      [call("{}"), { type: "text", text: "a" }],
      ["completed", "incomplete"],
    ],
  ];
  for (const [parts, statuses] of cases) {
    const turn: Turn = { ...turnOf(parts), finish_reason: "length" };
    assert.deepEqual(statusesOf(openaiResponses.answer(turn, context({})).output as unknown[]), statuses);
    const writer = openaiResponses.writer(context({}));
    const frames = [...toEvents(turn, String)].flatMap((event) => writer.event(event));
    const events = frames.map((frame) => JSON.parse(frame.data) as { type: string; item?: unknown; response?: { output: unknown[] } });
    assert.deepEqual(statusesOf(events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item)), statuses);
    assert.deepEqual(statusesOf(events.at(-1)?.response?.output ?? []), statuses);
  }
});

test("a keep-alive within an item is an empty delta of that item, elsewhere the response's own", () => {
  const writer = openaiResponses.writer(context({}));
  const alive = () => writer.keepAlive().map((frame) => JSON.parse(frame.data) as Record<string, unknown>);
  assert.deepEqual(
    alive().map((event) => event.type),
    ["response.created", "response.in_progress"],
  );
  assert.equal(alive()[0]?.type, "response.in_progress");
  writer.event({ type: "text-delta", text: "a" });
  const [event] = alive();
  assert.equal(event?.type, "response.output_text.delta");
  assert.equal(event?.delta, "");
  assert.equal(event?.item_id, `msg_${one}i0`);
  writer.event({ type: "tool-call", id: "c", name: "f", arguments: "{}" });
  const [between] = alive() as { type?: string; response?: { output?: unknown[] } }[];
  assert.equal(between?.type, "response.in_progress");
  assert.equal(between?.response?.output?.length, 2);
});

test("an error in the stream says whether a retry can help", () => {
  const code = (error: AlidadeError): string => {
    const frame = openaiResponses.writer(context({})).error(error).at(-1);
    return (JSON.parse(frame?.data ?? "{}") as { response: { error: { code: string } } }).response.error.code;
  };
  assert.equal(code(new AlidadeError("engine_error", "x")), "server_error");
  assert.equal(code(new AlidadeError("session_sealed", "x")), "invalid_prompt");
  assert.equal(code(new AlidadeError("context_length_exceeded", "x")), "context_length_exceeded");
  assert.equal(code(new AlidadeError("engine_error", "x", { status: 429 })), "rate_limit_exceeded");
});

test("Codex's threads are agents, its checkpoint is a compaction", () => {
  const tools = [{ type: "function", name: "f" }];
  const labels = (headers: Record<string, string>, body: Record<string, unknown>) => {
    const { agent, request_class } = openaiResponses.labels(headers, body);
    return `${agent} ${request_class}`;
  };
  const main = { "session-id": "s", "thread-id": "s", "x-codex-window-id": "s:0" };
  const sub = { "session-id": "s", "thread-id": "t2", "x-openai-subagent": "collab_spawn", "x-codex-parent-thread-id": "s" };
  const checkpoint = {
    input: [hello, { role: "user", content: [{ type: "input_text", text: "You are performing a CONTEXT CHECKPOINT COMPACTION. Create" }] }],
  };
  assert.equal(labels(main, { input: [hello], tools }), "main main");
  assert.equal(labels(main, checkpoint), "main compaction");
  assert.equal(labels(main, { ...checkpoint, tools }), "main main", "a task may quote the words");
  assert.equal(labels(sub, { input: [hello], tools }), "t2 sub_agent");
  assert.equal(labels(sub, checkpoint), "t2 compaction");
  assert.deepEqual(openaiResponses.labels(sub, { input: [hello], prompt_cache_key: "k" }).labels, {
    session_id: "s",
    thread_id: "t2",
    parent_thread_id: "s",
    subagent: "collab_spawn",
    prompt_cache_key: "k",
  });
});
