/**
 * Tools that the client runs and that its vendor's models know without a schema: by the vendors' own SDKs, through the real
 * proxy. The model gets a function, its call comes out in the tool's own form, whole and streamed, and goes back as it came.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { AlidadeError } from "../../../base/errors.ts";
import type { Dialect } from "../../../proxy/dialects/dialect.ts";
import { dialects } from "../../../proxy/dialects/registry.ts";
import { type Client, type ProxyAt, proxyAt } from "../../fakes/proxies/proxy-at.ts";

type Fields = Record<string, unknown>;
/** One turn of the SDK's client, and the next one, which sends the call and its result back. */
type Play = (client: Client, tool: Fields, stream: boolean) => Promise<{ form: Fields }>;

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const picture = `data:image/png;base64,${pixel}`;

/** The SDKs' types want each tool's own type; here a tool is data. */
const typed = <Params>(value: unknown): Params => value as Params;

const anthropic: Play = async ({ proxy, key }, tool, stream) => {
  const sdk = new Anthropic({ baseURL: proxy.url, apiKey: key, maxRetries: 0 });
  const messages: Anthropic.Beta.BetaMessageParam[] = [{ role: "user", content: "Hi" }];
  const ask = () => {
    const body = typed<Anthropic.Beta.MessageCreateParamsNonStreaming>({ model: "m", max_tokens: 99, messages, tools: [tool] });
    return stream ? sdk.beta.messages.stream(body).finalMessage() : sdk.beta.messages.create(body);
  };
  const { content, stop_reason } = await ask();
  assert.equal(stop_reason, "tool_use");
  const call = content.find((block) => block.type === "tool_use");
  assert.ok(call);
  const shown = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } } as const;
  messages.push({ role: "assistant", content });
  messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: [shown] }] });
  await ask();
  return { form: { name: call.name, input: call.input } };
};

const responses: Play = async ({ proxy, key }, tool, stream) => {
  const sdk = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: key, maxRetries: 0 });
  const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: "Hi" }];
  const ask = () => {
    const body = { model: "m", input, tools: [typed<OpenAI.Responses.Tool>(tool)], tool_choice: typed<"auto">({ type: tool.type }) };
    return stream ? sdk.responses.stream(body).finalResponse() : sdk.responses.create(body);
  };
  const output: OpenAI.Responses.ResponseOutputItem[] = (await ask()).output;
  const call = output.find((one) => one.type === "computer_call");
  assert.ok(call, JSON.stringify(output));
  assert.deepEqual([call.status, call.pending_safety_checks], ["completed", []]);
  assert.match(call.id, /^cu_/);
  input.push(...typed<OpenAI.Responses.ResponseInputItem[]>(output));
  input.push({ type: "computer_call_output", call_id: call.call_id, output: { type: "computer_screenshot", image_url: picture } });
  await ask();
  return { form: { action: call.action, actions: call.actions } };
};

const google: Play = async ({ proxy, key }, tool, stream) => {
  const sdk = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: proxy.url } });
  const contents: Fields[] = [{ role: "user", parts: [{ text: "Hi" }] }];
  const ask = async () => {
    const body = { model: String(tool.model ?? "m"), contents, config: { tools: [{ computerUse: tool.computerUse as Fields }] } };
    if (!stream) return (await sdk.models.generateContent(typed(body))).candidates?.[0]?.content?.parts ?? [];
    const parts = [];
    for await (const piece of await sdk.models.generateContentStream(typed(body)))
      parts.push(...(piece.candidates?.[0]?.content?.parts ?? []));
    return parts;
  };
  const parts = await ask();
  const call = parts.find((part) => part.functionCall)?.functionCall;
  assert.ok(call);
  const shown = [{ inlineData: { mimeType: "image/png", data: pixel } }];
  const response = { id: call.id, name: call.name, response: { url: "http://a" }, parts: shown };
  contents.push({ role: "model", parts }, { role: "user", parts: [{ functionResponse: response }] });
  await ask();
  return { form: { name: call.name, args: call.args } };
};

type Case = { title: string; play: Play; tool: Fields; name: string; sampled: string; form: Fields };

const screen = { display_width_px: 1280, display_height_px: 800 };
const editor = { type: "text_editor_20250728", name: "str_replace_based_edit_tool" };
const clicked = { type: "click", button: "left", x: 3, y: 4 };
const preview = { type: "computer_use_preview", display_width: 1280, display_height: 800, environment: "linux" };

/** Spaces and key order of `sampled` are unlike any serialiser's: what the engine is asked again shows whose text it is. */
const cases: Case[] = [
  {
    title: "Messages bash",
    play: anthropic,
    tool: { type: "bash_20250124", name: "bash" },
    name: "bash",
    sampled: '{"command" :  "ls -l"}',
    form: { name: "bash", input: { command: "ls -l" } },
  },
  {
    title: "Messages text editor",
    play: anthropic,
    tool: editor,
    name: editor.name,
    sampled: '{"path":"/a", "command":"insert", "insert_line":0,"insert_text":"x\\n"}',
    form: { name: editor.name, input: { command: "insert", path: "/a", insert_line: 0, insert_text: "x\n" } },
  },
  {
    title: "Messages computer",
    play: anthropic,
    tool: { type: "computer_20251124", name: "computer", ...screen },
    name: "computer",
    sampled: '{"coordinate":[3, 4], "action":"left_click"}',
    form: { name: "computer", input: { action: "left_click", coordinate: [3, 4] } },
  },
  {
    title: "Messages memory",
    play: anthropic,
    tool: { type: "memory_20250818", name: "memory" },
    name: "memory",
    sampled: '{"command":"view",  "path":"/memories"}',
    form: { name: "memory", input: { command: "view", path: "/memories" } },
  },
  {
    title: "Responses computer",
    play: responses,
    tool: { type: "computer" },
    name: "computer",
    sampled: '{"actions": [{"type":"click","x":3,"y":4,"button":"left"}, {"y":1.0,"x":2,"type":"double_click"}]}',
    form: { action: undefined, actions: [clicked, { type: "double_click", x: 2, y: 1, keys: null }] },
  },
  {
    title: "Responses computer_use_preview",
    play: responses,
    tool: preview,
    name: "computer_use_preview",
    sampled: '{"x":3, "y":4,"type":"click","button":"left"}',
    form: { action: clicked, actions: undefined },
  },
  {
    title: "generateContent computerUse",
    play: google,
    tool: { computerUse: { environment: "ENVIRONMENT_BROWSER" } },
    name: "click",
    sampled: '{"y":4,  "x":3}',
    form: { name: "click", args: { x: 3, y: 4 } },
  },
  {
    title: "generateContent computerUse of the first models",
    play: google,
    tool: { model: "gemini-3-flash-preview", computerUse: { environment: "ENVIRONMENT_BROWSER" } },
    name: "click_at",
    sampled: '{"y":4,  "x":3}',
    form: { name: "click_at", args: { x: 3, y: 4 } },
  },
];

for (const { title, play, tool, name, sampled, form } of cases)
  for (const [relay, stream] of [
    ["buffered", false],
    ["buffered", true],
    ["live", true],
  ] as const)
    test(`${title}: a function to the model, its own form to the client, and the sampled text again (${relay}, ${stream ? "streamed" : "whole"})`, async () => {
      await using at = await proxyAt((_, index) =>
        index === 0 ? { tool_calls: [{ id: "engine-0", name, arguments: sampled }] } : { text: "End." },
      );
      const client = await at.open({ purpose: "train", relay });
      assert.deepEqual((await play(client, tool, stream)).form, form);
      await reachedEngine(at, client, name, sampled);
    });

for (const tool of [{ type: "computer" }, preview])
  test(`${tool.type}: the items of a stored response say the call and its picture in the form that they were sent in`, async () => {
    const action = { type: "wait" };
    const sampled = tool === preview ? action : { actions: [action] };
    await using at = await proxyAt((_, index) =>
      index === 0 ? { tool_calls: [{ id: "engine-0", name: tool.type, arguments: JSON.stringify(sampled) }] } : { text: "End." },
    );
    const { proxy, key } = await at.open();
    const sdk = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: key, maxRetries: 0 });
    const tools = [typed<OpenAI.Responses.Tool>(tool)];
    const first = await sdk.responses.create({ model: "m", input: "Hi", tools });
    const [call] = first.output as OpenAI.Responses.ResponseComputerToolCall[];
    const output = { type: "computer_screenshot", image_url: picture } as const;
    const result = { type: "computer_call_output", call_id: call?.call_id ?? "", output } as const;
    const second = await sdk.responses.create({ model: "m", previous_response_id: first.id, input: [result], tools });
    const { data } = await sdk.responses.inputItems.list(second.id, { order: "asc" });
    assert.deepEqual(
      data.map(({ type }) => type),
      ["message", "computer_call", "computer_call_output"],
    );
    const [, listedCall, listedResult] = data as unknown as Fields[];
    assert.deepEqual([listedCall?.action, listedCall?.actions, listedCall?.call_id], [call?.action, call?.actions, result.call_id]);
    assert.deepEqual([listedResult?.output, listedResult?.call_id], [output, result.call_id]);
  });

/** The engine was offered the tool, and got the call as it was sampled and the picture of its result. */
async function reachedEngine(at: ProxyAt, client: Client, name: string, sampled: string): Promise<void> {
  const sent = at.engine.requests as unknown as { tools?: { function: { name: string } }[]; messages?: Fields[] }[];
  for (const { tools } of sent)
    assert.ok(
      tools?.some((one) => one.function.name === name),
      `${name} is offered`,
    );
  const [, said, result] = sent.at(-1)?.messages ?? [];
  const [call] = (said?.tool_calls ?? []) as { function: Fields }[];
  assert.deepEqual([call?.function.name, call?.function.arguments], [name, sampled]);
  assert.ok(JSON.stringify(result?.content).includes(picture));
  const { calls } = await client.trajectory();
  assert.deepEqual([calls.length, calls.at(-1)?.match, calls.at(-1)?.omitted], [2, "exact", undefined]);
  assert.deepEqual(at.unseen, []);
}

const parse = (name: string, fields: Fields) => (dialects.find((one) => one.name === name) as Dialect).parse(fields, {});
const messages = (tools: Fields[]) =>
  parse("anthropic-messages", { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }], tools });
const generate = (computerUse: Fields, more: Fields[] = [], model = "m") =>
  parse("google-generate-content", { model, contents: [{ role: "user", parts: [{ text: "Hi" }] }], tools: [{ computerUse }, ...more] });
const respond = (fields: Fields) => parse("openai-responses", { model: "m", input: "Hi", ...fields });

const properties = (schema: Fields | null | undefined) => schema?.properties as Record<string, { enum?: string[] }>;

test("what a tool's date and fields say of it is what the model reads", () => {
  const [first, second, third] = messages([
    { type: "computer_20241022", name: "one", ...screen },
    { type: "computer_20250124", name: "two", ...screen },
    { type: "computer_20251124", name: "three", ...screen, enable_zoom: true },
  ]).tools;
  const actions = [first, second, third].map((tool) => properties(tool?.parameters).action?.enum ?? []);
  assert.deepEqual(
    actions.map((list) => [list.includes("left_click"), list.includes("scroll"), list.includes("zoom")]),
    [
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ],
  );
  assert.match(first?.description ?? "", /1280x800/);
  assert.match(respond({ tools: [preview] }).tools[0]?.description ?? "", /1280x800.*linux/);
  const [old, current] = messages([{ type: "text_editor_20250124", name: "str_replace_editor" }, editor]).tools;
  assert.ok(properties(old?.parameters).command?.enum?.includes("undo_edit"));
  assert.ok(!properties(current?.parameters).command?.enum?.includes("undo_edit"));
  assert.ok(Object.hasOwn(properties(current?.parameters), "insert_text") && !Object.hasOwn(properties(old?.parameters), "insert_text"));
});

test("predefined functions leave out the excluded ones, give way to the client's own, and name what Google alone can do", () => {
  const own = { functionDeclarations: [{ name: "navigate", description: "Mine." }] };
  const asked = { environment: "ENVIRONMENT_BROWSER", excludedPredefinedFunctions: ["hotkey"], enablePromptInjectionDetection: true };
  const { tools, omitted } = generate(asked, [own]);
  assert.equal(tools.filter(({ name }) => name === "navigate").length, 1);
  assert.equal(tools.find(({ name }) => name === "navigate")?.description, "Mine.");
  assert.ok(!tools.some(({ name }) => name === "hotkey"));
  assert.deepEqual(omitted, ["field tools[0].computerUse.enablePromptInjectionDetection"]);
  // Snake case, as some of Google's SDKs send it.
  assert.ok(!generate({ excluded_predefined_functions: ["click"] }).tools.some(({ name }) => name === "click"));
});

test("a computer's arguments that are no action go out as the function call that was sampled", () => {
  const dialect = dialects.find((one) => one.name === "openai-responses") as Dialect;
  const { native } = respond({ tools: [{ type: "computer" }, preview] });
  const context = { call_id: "callaaaaaaaaaaaaaaaaaaaa", created: 1, model: "m", native, custom_tools: new Set<string>() };
  for (const [name, sampled] of [
    ["computer", '{"actions":[]}'],
    ["computer", '{"actions":[{"type":"click","x":1,"y":2}]}'],
    ["computer", '{"actions":[{"type":"wait"},7]}'],
    ["computer", '{"actions":[{"type":"move","x":1e999,"y":2}]}'],
    ["computer_use_preview", '{"type":"__proto__"}'],
    ["computer_use_preview", '{"type":"drag","path":[]}'],
    ["computer_use_preview", '{"type":"keypress","keys":"ctrl"}'],
  ] as const) {
    const part = { type: "tool_call", id: "x", name, arguments: sampled, kind: "function" } as const;
    const usage = { prompt_tokens: 1, cached_tokens: null, sampled_tokens: 1, reasoning_tokens: null };
    const turn = { message: { role: "assistant" as const, parts: [part] }, finish_reason: "tool_calls" as const, stop: null, usage };
    const [item] = dialect.answer(turn, context).output as Fields[];
    assert.deepEqual([item?.type, item?.name, item?.arguments], ["function_call", name, sampled]);
  }
});

test("a screen's history of another vendor's session is a call and its picture, whether the tool is offered now or not", () => {
  const items = [
    { role: "user", content: "Hi" },
    {
      type: "computer_call",
      id: "cu_1",
      call_id: "c1",
      action: { type: "wait" },
      pending_safety_checks: [{ id: "s" }],
      status: "completed",
    },
    { type: "computer_call_output", call_id: "c1", output: { type: "computer_screenshot", image_url: picture } },
    { type: "computer_call", id: "cu_2", call_id: "c2", actions: [clicked], action: clicked, status: "completed" },
    { type: "computer_call_output", call_id: "c2", output: { type: "input_image", image_url: picture, detail: "original" } },
  ];
  for (const tools of [[], [{ type: "computer" }, preview]]) {
    const { messages: read } = respond({ input: items, tools });
    assert.deepEqual(
      read.slice(1).map(({ parts: [part] }) => part),
      [
        { type: "tool_call", id: "c1", name: "computer_use_preview", arguments: '{"type":"wait"}', kind: "function" },
        { type: "tool_result", call_id: "c1", content: [{ type: "image", url: picture }], is_error: false },
        { type: "tool_call", id: "c2", name: "computer", arguments: JSON.stringify({ actions: [clicked] }), kind: "function" },
        { type: "tool_result", call_id: "c2", content: [{ type: "image", url: picture, detail: "original" }], is_error: false },
      ],
    );
  }
});

const item = (fields: Fields) => () => respond({ input: [{ role: "user", content: "Hi" }, fields] });
const refused: [what: string, parsed: () => unknown, param: string][] = [
  ["a date that is not known", () => messages([{ type: "bash_20990101", name: "bash" }]), "tools[0].type"],
  ["a screen without a size", () => messages([{ type: "computer_20251124", name: "computer" }]), "tools[0].display_width_px"],
  ["a preview screen without a size", () => respond({ tools: [{ type: "computer_use_preview" }] }), "tools[0].display_width"],
  ["a phone", () => generate({ environment: "ENVIRONMENT_MOBILE" }), "tools[0].computerUse.environment"],
  ["a call without an action", item({ type: "computer_call", call_id: "c" }), "input[1].action"],
  ["a list that is none", item({ type: "computer_call", call_id: "c", actions: 7 }), "input[1].actions"],
  ["two calls in one", item({ type: "computer_call", call_id: "c", action: { type: "wait" }, actions: [clicked] }), "input[1].action"],
  [
    "a result without a call",
    item({ type: "computer_call_output", output: { type: "computer_screenshot", image_url: picture } }),
    "input[1].call_id",
  ],
  ["a result without a picture", item({ type: "computer_call_output", call_id: "c", output: {} }), "input[1].output.type"],
  [
    "a picture that is a file",
    item({ type: "computer_call_output", call_id: "c", output: { type: "computer_screenshot", file_id: "f" } }),
    "input[1].output.file_id",
  ],
];

for (const [what, parsed, param] of refused)
  test(`${what} is refused at ${param}`, () => {
    assert.throws(parsed, (error) => error instanceof AlidadeError && error.code === "request_invalid" && error.param === param);
  });
