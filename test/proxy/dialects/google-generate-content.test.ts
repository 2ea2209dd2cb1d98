import assert from "node:assert/strict";
import { test } from "node:test";
import { mintToolCallId } from "../../../base/schema/ids.ts";
import type { Message } from "../../../base/schema/message.ts";
import { carrierOf } from "../../../proxy/dialects/carrier.ts";
import type { AnswerContext } from "../../../proxy/dialects/dialect.ts";
import { toJsonSchema } from "../../../proxy/dialects/google-generate-content/schema.ts";
import { googleGenerateContent as google } from "../../../proxy/dialects/google-generate-content.ts";

const callId = "callabcdefghij0123456789";
const context: AnswerContext = { call_id: callId, created: 5, model: "policy", native: {}, custom_tools: new Set() };

const parse = (body: Record<string, unknown>) =>
  google.parse({ model: "m", contents: [{ role: "user", parts: [{ text: "Hi" }] }], ...body }, {});
const messagesOf = (contents: unknown[]): Message[] =>
  parse({ contents: [...contents, { role: "user", parts: [{ text: "Go" }] }] }).messages.slice(0, -1);

/** The head of what Gemini CLI 0.61.0 sends, cut down in length only. */
const geminiCli = {
  contents: [
    { role: "user", parts: [{ text: "<session_context>\nToday is …\n</session_context>" }] },
    { role: "user", parts: [{ text: "Repair add." }] },
    {
      role: "model",
      parts: [
        { text: "I look first." },
        {
          functionCall: { name: "run_shell_command", args: { command: "cat add.js" }, id: mintToolCallId(callId, 0) },
          thoughtSignature: carrierOf(callId),
        },
      ],
    },
    {
      role: "user",
      parts: [
        {
          functionResponse: {
            id: mintToolCallId(callId, 0),
            name: "run_shell_command",
            response: { output: "Output: …\nProcess Group PGID: 77" },
          },
        },
      ],
    },
  ],
  systemInstruction: { role: "user", parts: [{ text: "You are Gemini CLI." }] },
  tools: [
    {
      functionDeclarations: [
        {
          name: "run_shell_command",
          description: "Runs it.",
          parametersJsonSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
        },
      ],
    },
  ],
  generationConfig: { temperature: 1, topP: 0.95, topK: 64, thinkingConfig: { includeThoughts: true } },
};

test("what Gemini CLI sends is understood whole", () => {
  const request = google.parse({ ...geminiCli, model: "gemini-2.5-pro", stream: true }, { "user-agent": "GeminiCLI-tui/0.61.0/m (linux)" });
  assert.deepEqual(request, {
    model: "gemini-2.5-pro",
    stream: true,
    messages: [
      { role: "system", parts: [{ type: "text", text: "You are Gemini CLI." }] },
      { role: "user", parts: [{ type: "text", text: "<session_context>\nToday is …\n</session_context>" }] },
      { role: "user", parts: [{ type: "text", text: "Repair add." }] },
      {
        role: "assistant",
        parts: [
          { type: "text", text: "I look first." },
          { type: "reasoning", text: "", carrier: carrierOf(callId) },
          { type: "tool_call", id: `${callId}t0`, name: "run_shell_command", arguments: '{"command":"cat add.js"}', kind: "function" },
        ],
      },
      {
        role: "tool",
        parts: [
          {
            type: "tool_result",
            call_id: `${callId}t0`,
            content: [{ type: "text", text: "Output: …\nProcess Group PGID: 77" }],
            is_error: false,
          },
        ],
      },
    ],
    tools: [
      {
        name: "run_shell_command",
        description: "Runs it.",
        parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
        kind: "function",
      },
    ],
    tool_choice: null,
    sampling: { temperature: 1, top_p: 0.95, top_k: 64 },
    native: { generationConfig: geminiCli.generationConfig },
  });
});

test("snake case says the same, and what belongs to tools keeps its own", () => {
  const request = parse({
    system_instruction: { parts: [{ text: "S" }] },
    generation_config: { max_output_tokens: 5, stop_sequences: ["x"], response_mime_type: "application/json" },
    tool_config: { function_calling_config: { mode: "ANY", allowed_function_names: ["f"] } },
    tools: [
      { function_declarations: [{ name: "f", parameters: { type: "OBJECT", properties: { a_b: { type: "STRING", min_length: "2" } } } }] },
    ],
    contents: [
      { parts: [{ inline_data: { mime_type: "image/png", data: "AA==" } }] },
      { role: "model", parts: [{ function_call: { name: "f", args: { a_b: 1 } } }] },
      { role: "function", parts: [{ function_response: { name: "f", response: { some_key: 1 } } }] },
    ],
  });
  assert.deepEqual(request.sampling, { max_tokens: 5, stop: ["x"], response_format: { type: "json_object" } });
  assert.deepEqual(request.tool_choice, { name: "f" });
  assert.deepEqual(request.tools[0]?.parameters, { type: "object", properties: { a_b: { type: "string", minLength: 2 } } });
  assert.deepEqual(request.messages.slice(1), [
    { role: "user", parts: [{ type: "image", url: "data:image/png;base64,AA==" }] },
    { role: "assistant", parts: [{ type: "tool_call", id: "function1", name: "f", arguments: '{"a_b":1}', kind: "function" }] },
    {
      role: "tool",
      parts: [{ type: "tool_result", call_id: "function1", content: [{ type: "text", text: '{"some_key":1}' }], is_error: false }],
    },
  ]);
});

test("responses without ids answer calls by name and then by order", () => {
  const call = (name: string, id?: string) => ({ functionCall: { name, args: {}, ...(id && { id }) } });
  const answer = (name: string, id?: string) => ({ functionResponse: { name, response: { output: "" }, ...(id && { id }) } });
  const idsOf = (calls: unknown[], answers: unknown[]) =>
    messagesOf([
      { role: "model", parts: calls },
      { role: "user", parts: answers },
    ]).flatMap((message) => message.parts.flatMap((part) => (part.type === "tool_result" ? [part.call_id] : [])));
  assert.deepEqual(idsOf([call("a"), call("b"), call("a")], [answer("b"), answer("a"), answer("a")]), [
    "function2",
    "function1",
    "function3",
  ]);
  assert.deepEqual(idsOf([call("a"), call("b")], [answer("renamed"), answer("b")]), ["function1", "function2"]);
  assert.deepEqual(idsOf([call("a", "x"), call("a", "y")], [answer("a", "y"), answer("a", "x")]), ["y", "x"]);
  // Gemini CLI's sub-agents name a call in the response only.
  assert.deepEqual(idsOf([call("a"), call("a")], [answer("a", "7f3a#0-0"), answer("a", "7f3a#0-1")]), ["function1", "function2"]);
  assert.deepEqual(idsOf([call("a", "x")], [answer("a", "other")]), ["other"], "a call with an id of its own is not taken for another");
});

test("a signature of ours names the call where an older client left the ids out", () => {
  const part = { functionCall: { name: "f", args: {} }, thoughtSignature: carrierOf(callId) };
  const [message] = messagesOf([{ role: "model", parts: [{ text: "So" }, part, part] }]);
  assert.deepEqual(
    message?.parts.flatMap((one) => (one.type === "tool_call" ? [one.id] : [])),
    [mintToolCallId(callId, 0), mintToolCallId(callId, 1)],
  );
  const [foreign] = messagesOf([{ role: "model", parts: [{ ...part, thoughtSignature: "skip_thought_signature_validator" }] }]);
  assert.equal(foreign?.parts[0]?.type === "tool_call" && foreign.parts[0].id, "function1");
  const [said] = messagesOf([{ role: "model", parts: [{ text: "So", thoughtSignature: carrierOf(callId) }] }]);
  assert.deepEqual(said?.parts, [
    { type: "reasoning", text: "", carrier: carrierOf(callId) },
    { type: "text", text: "So" },
  ]);
});

test("a function response that says more than its output or its error is kept whole, and an error that is none is not invented", () => {
  const resultOf = (response: Record<string, unknown>) => {
    const part = messagesOf([{ role: "user", parts: [{ functionResponse: { id: "a", name: "f", response } }] }])[0]?.parts[0];
    assert.ok(part?.type === "tool_result");
    return { said: part.content.map((one) => (one.type === "text" ? one.text : "")).join(""), is_error: part.is_error };
  };
  assert.deepEqual(resultOf({}), { said: "", is_error: false });
  assert.deepEqual(resultOf({ output: "x" }), { said: "x", is_error: false });
  assert.deepEqual(resultOf({ error: "exit 1" }), { said: "exit 1", is_error: true });
  assert.deepEqual(resultOf({ error: { code: 1 } }), { said: '{"code":1}', is_error: true });
  const whole: [response: Record<string, unknown>, is_error: boolean][] = [
    [{ output: null }, false],
    [{ output: "x", exitCode: 3 }, false],
    [{ error: "exit 1", stdout: "the real output" }, true],
    [{ output: "partial", error: "timeout" }, true],
    [{ output: null, error: "boom" }, true],
    ...[null, "", false, 0, {}, []].flatMap((error): [Record<string, unknown>, boolean][] => [
      [{ error }, false],
      [{ error, stdout: "42 files" }, false],
      [{ error, output: "42 files" }, false],
    ]),
  ];
  for (const [response, is_error] of whole) assert.deepEqual(resultOf(response), { said: JSON.stringify(response), is_error });
});

test("function responses become messages of their own, and what stands around them stays in order", () => {
  const messages = messagesOf([
    { role: "model", parts: [{ functionCall: { id: "a", name: "f", args: {} } }, { functionCall: { id: "b", name: "f", args: {} } }] },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "a", name: "f", response: { error: "no such file" } } },
        {
          functionResponse: {
            id: "b",
            name: "f",
            response: { output: { n: 1 } },
            parts: [{ inlineData: { mimeType: "image/png", data: "AA==" } }],
          },
        },
        { text: "Look." },
      ],
    },
  ]);
  assert.deepEqual(messages.slice(1), [
    { role: "tool", parts: [{ type: "tool_result", call_id: "a", content: [{ type: "text", text: "no such file" }], is_error: true }] },
    {
      role: "tool",
      parts: [
        {
          type: "tool_result",
          call_id: "b",
          content: [
            { type: "text", text: '{"n":1}' },
            { type: "image", url: "data:image/png;base64,AA==" },
          ],
          is_error: false,
        },
      ],
    },
    { role: "user", parts: [{ type: "text", text: "Look." }] },
  ]);
});

test("Google's own tools are left out and named, and what they did is a call and its result", () => {
  const request = parse({
    contents: [
      { parts: [{ text: "Hi" }] },
      {
        role: "model",
        parts: [
          { text: "I count." },
          { executableCode: { language: "PYTHON", code: "1" } },
          { codeExecutionResult: { outcome: "OUTCOME_FAILED", output: "no" } },
          { toolCall: { id: "s1", toolType: "GOOGLE_SEARCH_WEB", args: { queries: ["one"] } } },
          { toolResponse: { id: "s1", toolType: "GOOGLE_SEARCH_WEB", response: { found: 1 } } },
          { text: "1" },
        ],
      },
      { parts: [{ text: "Go" }] },
    ],
    tools: [{ googleSearch: {} }, { urlContext: {} }],
  });
  assert.deepEqual(request.omitted, ["tool googleSearch", "tool urlContext"]);
  assert.deepEqual(request.messages.slice(1, -1), [
    {
      role: "assistant",
      parts: [
        { type: "text", text: "I count." },
        { type: "tool_call", id: "hosted1", name: "code_execution", arguments: '{"language":"PYTHON","code":"1"}', kind: "function" },
      ],
    },
    { role: "tool", parts: [{ type: "tool_result", call_id: "hosted1", content: [{ type: "text", text: "no" }], is_error: true }] },
    {
      role: "assistant",
      parts: [{ type: "tool_call", id: "s1", name: "GOOGLE_SEARCH_WEB", arguments: '{"queries":["one"]}', kind: "function" }],
    },
    { role: "tool", parts: [{ type: "tool_result", call_id: "s1", content: [{ type: "text", text: '{"found":1}' }], is_error: false }] },
    { role: "assistant", parts: [{ type: "text", text: "1" }] },
  ]);
  assert.deepEqual(request.tools, []);
});

test("Google's schemas become JSON Schema", () => {
  assert.deepEqual(
    toJsonSchema({
      type: "OBJECT",
      nullable: true,
      propertyOrdering: ["b", "a", "gone"],
      required: ["b"],
      properties: {
        a: { type: "ARRAY", minItems: "1", maxItems: "3", items: { type: "STRING", format: "enum", enum: ["x"], nullable: true } },
        b: {
          type: "TYPE_UNSPECIFIED",
          anyOf: [
            { type: "INTEGER", format: "int64" },
            { type: "STRING", maxLength: "9" },
          ],
          nullable: true,
        },
        type: { type: "STRING", description: "a property named type" },
      },
    }),
    {
      type: ["object", "null"],
      required: ["b"],
      properties: {
        b: { anyOf: [{ type: "integer", format: "int64" }, { type: "string", maxLength: 9 }, { type: "null" }] },
        a: { type: "array", items: { type: ["string", "null"], enum: ["x", null] }, minItems: 1, maxItems: 3 },
        type: { type: "string", description: "a property named type" },
      },
    },
  );
  assert.deepEqual(Object.keys(toJsonSchema({ propertyOrdering: ["b"], properties: { a: {}, b: {} } }).properties as object), ["b", "a"]);
});

test("a response schema is asked of the engine, converted or as it is", () => {
  const wanted = { type: "json_schema", json_schema: { name: "output", schema: { type: "object" } } };
  assert.deepEqual(
    parse({ generationConfig: { responseMimeType: "application/json", responseSchema: { type: "OBJECT" } } }).sampling.response_format,
    wanted,
  );
  assert.deepEqual(parse({ generationConfig: { responseJsonSchema: { type: "object" } } }).sampling.response_format, wanted);
});

test("thinking is turned off by a budget of none, and levelled by name", () => {
  const effort = (thinkingConfig: unknown) => parse({ generationConfig: { thinkingConfig } }).sampling.reasoning_effort;
  assert.equal(effort({ thinkingBudget: 0 }), "none");
  assert.equal(effort({ thinkingBudget: 8192 }), undefined);
  assert.equal(effort({ thinkingLevel: "HIGH" }), "high");
});

test("thoughts are told only to those who ask, and their signature to all", () => {
  const turn = {
    message: {
      role: "assistant" as const,
      parts: [
        { type: "reasoning" as const, text: "hm" },
        { type: "text" as const, text: "So." },
      ],
    },
    finish_reason: "stop" as const,
    stop: null,
    usage: { prompt_tokens: 1, cached_tokens: null, sampled_tokens: 3, reasoning_tokens: 1 },
  };
  const parts = (native: Record<string, unknown>) =>
    (google.answer(turn, { ...context, native }).candidates as { content: { parts: unknown[] } }[])[0]?.content.parts;
  const thoughtSignature = carrierOf(callId);
  assert.deepEqual(parts({}), [{ text: "So.", thoughtSignature }]);
  assert.deepEqual(parts({ generationConfig: { thinking_config: { include_thoughts: true } } }), [
    { text: "hm", thought: true, thoughtSignature },
    { text: "So.", thoughtSignature },
  ]);
});

test("numbers of a call's arguments keep the text that was sampled", () => {
  const writer = google.writer(context);
  const [frame] = writer.event({ type: "tool-call", id: "x", name: "f", arguments: '{"n":1.0,"big":12345678901234567890}' });
  assert.match(frame?.data ?? "", /"args":\{"n":1\.0,"big":12345678901234567890\}/);
});

test("malformed arguments are text, and flagged outside the content", () => {
  const writer = google.writer(context);
  writer.event({ type: "text-delta", text: "So: " });
  writer.event({ type: "tool-call", id: "x", name: "f", arguments: '{"a' });
  const [end] = writer.event({
    type: "end",
    finish_reason: "tool_calls",
    stop: null,
    usage: { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null },
  });
  assert.deepEqual(JSON.parse(end?.data ?? "").alidade, { malformed_tool_calls: [{ part: 1, name: "f" }] });
});

test("Gemini CLI's agents and side calls are labelled", () => {
  const cli = { "user-agent": "GeminiCLI-tui/0.61.0/m (linux; x64)" };
  const declared = (...names: string[]) => [{ functionDeclarations: names.map((name) => ({ name })) }];
  const labelled = (body: Record<string, unknown>, headers: Record<string, string> = cli) => {
    const { agent, request_class } = google.labels(headers, { contents: [], ...body });
    return [agent, request_class];
  };
  assert.deepEqual(labelled({ stream: true, tools: declared("invoke_agent", "replace") }), ["main", "main"]);
  assert.deepEqual(labelled({ stream: true, tools: declared("complete_task", "replace") }), ["sub_agent", "sub_agent"]);
  const schema = { generationConfig: { responseJsonSchema: { type: "object" } } };
  assert.deepEqual(labelled({ stream: false, ...schema }), ["main", "check"]);
  assert.deepEqual(
    labelled({ stream: false, ...schema }, { "user-agent": "google-genai-sdk/3" }),
    ["main", "main"],
    "of a program that is its own call",
  );
  assert.deepEqual(google.labels(cli, {}).labels, { user_agent: cli["user-agent"] });
});

test("the address names model, verb and framing", () => {
  const address = (call: string, query: Record<string, string> = {}) => google.address?.({ params: { call }, query });
  assert.deepEqual(address("org/a:free:streamGenerateContent", { alt: "sse" }), {
    fields: { model: "org/a:free", stream: true },
    framing: "sse",
  });
  assert.deepEqual(address("m:streamGenerateContent"), { fields: { model: "m", stream: true }, framing: "json-array" });
  assert.deepEqual(address("m:generateContent")?.fields, { model: "m", stream: false });
});

test("counting tokens takes the request itself or one inside", () => {
  const inner = { contents: [{ parts: [{ text: "Hi" }] }], systemInstruction: { parts: [{ text: "S" }] } };
  const request = google.parse({ model: "m", stream: false, generateContentRequest: { model: "models/other", ...inner } }, {});
  assert.equal(request.model, "m");
  assert.equal(request.messages.length, 2);
  assert.deepEqual(google.countTokens?.(7), { totalTokens: 7 });
});

test("a key named __proto__ in a call's arguments stays where it was", () => {
  const { messages } = google.parse(
    JSON.parse(
      '{"contents":[{"role":"user","parts":[{"text":"Go"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"read","args":{"__proto__":{"x":1}}}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"read","response":{"__proto__":1}}}]}],"model":"m"}',
    ),
    {},
  );
  assert.match(JSON.stringify(messages), /"arguments":"\{\\"__proto__\\":\{\\"x\\":1\}\}"/);
});

test("a calling mode that is the name of a property of every object is refused as any other word", () => {
  for (const mode of ["constructor", "toString", "__proto__", "hasOwnProperty", "auto"])
    assert.throws(() => parse({ toolConfig: { functionCallingConfig: { mode } } }), {
      code: "request_invalid",
      param: "toolConfig.functionCallingConfig.mode",
    });
});

test("a hundred thousand parts with signatures of as many calls are read in one pass", { timeout: 300_000 }, () => {
  const parts = Array.from({ length: 100_000 }, (_, index) => {
    const thoughtSignature = carrierOf(`call${index.toString(36).padStart(20, "0")}`);
    return index % 2 === 0 ? { text: "a", thoughtSignature } : { functionCall: { name: "f", args: {} }, thoughtSignature };
  });
  const [message] = google.parse(
    {
      model: "m",
      contents: [
        { role: "model", parts },
        { role: "user", parts: [{ text: "b" }] },
      ],
    },
    {},
  ).messages;
  assert.equal(message?.parts.length, 200_000);
});
