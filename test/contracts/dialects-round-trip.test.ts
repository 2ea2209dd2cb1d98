/**
 * Random conversations, over what each dialect can say, written as a client of that dialect writes them: parsed, they
 * are the same conversation. What a dialect cannot say stands in its `Sayable`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { imageUrl } from "../../base/media/stored-picture.ts";
import type { Message, Part } from "../../base/schema/message.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { parseJson } from "../../base/wire/json.ts";
import { openaiCompletions } from "../../proxy/dialects/openai-completions.ts";
import { parseResponses } from "../../proxy/dialects/openai-responses/parse.ts";
import { toItems } from "../../proxy/dialects/openai-responses/to-items.ts";
import { dialects } from "../../proxy/dialects/registry.ts";
import { frozen } from "./frozen.ts";

type Sayable = {
  roles: readonly ("system" | "developer")[];
  /** Reasoning travels with an opaque value. */
  carrier: boolean;
  customCalls: boolean;
  resultErrors: boolean;
  /** Arguments may be any string; otherwise they are an object, and their spacing is lost. */
  rawArguments: boolean;
  /** Parts of an assistant message keep their order; otherwise it is reasoning, text, calls. */
  order: boolean;
  /** A system message has one text. */
  oneSystemText: boolean;
  /** A tool result is one text and then images. */
  oneResultText?: boolean;
  /** Only a tool result that has a text can be an error. */
  errorsHaveText?: boolean;
  build(messages: Message[]): Record<string, unknown>;
};

const text = fc.string({ unit: "binary", minLength: 1, maxLength: 12 });
const textPart = text.map((value): Part => ({ type: "text", text: value }));
const imagePart = fc.constant<Part>({ type: "image", url: "data:image/png;base64,AA==" });
const name = fc.constantFrom("read", "write", "exec_command");
const id = fc.stringMatching(/^[a-z0-9]{1,8}$/);

function messageOf(say: Sayable): fc.Arbitrary<Message> {
  const reasoning = fc
    .record({ text, carrier: text })
    .map((value): Part => ({ type: "reasoning", text: value.text, ...(say.carrier && { carrier: value.carrier }) }));
  const rawArguments = say.rawArguments
    ? fc.string({ unit: "binary" })
    : fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value));
  const kind = fc.constantFrom(...(say.customCalls ? (["function", "custom"] as const) : (["function"] as const)));
  const call = fc.record({ type: fc.constant("tool_call" as const), id, name, arguments: rawArguments, kind });
  const assistant = say.order
    ? fc.array(fc.oneof(textPart, reasoning, call), { minLength: 1, maxLength: 5 })
    : fc
        .tuple(fc.array(reasoning, { maxLength: 1 }), fc.array(textPart, { maxLength: 3 }), fc.array(call, { maxLength: 3 }))
        .map(([reasons, texts, calls]): Part[] => [...reasons, ...texts, ...calls]);
  const content = fc.array(fc.oneof(textPart, imagePart), { maxLength: 3 }) as fc.Arbitrary<Extract<Part, { type: "text" | "image" }>[]>;
  const textThenImages = fc
    .tuple(fc.array(textPart, { maxLength: 1 }), fc.array(imagePart, { maxLength: 2 }))
    .map((parts) => parts.flat()) as typeof content;
  const anyResult = fc.record({
    type: fc.constant("tool_result" as const),
    call_id: id,
    content: say.oneResultText ? textThenImages : content,
    is_error: say.resultErrors ? fc.boolean() : fc.constant(false),
  });
  const hasText = (part: { content: Part[] }): boolean => part.content.some(({ type }) => type === "text");
  const result = anyResult.map((part) => (say.errorsHaveText && !hasText(part) ? { ...part, is_error: false } : part));
  return fc.oneof(
    fc.record({ role: fc.constantFrom(...say.roles), parts: fc.array(textPart, { minLength: 1, maxLength: say.oneSystemText ? 1 : 3 }) }),
    fc.record({ role: fc.constant("user" as const), parts: content }),
    fc.record({ role: fc.constant("assistant" as const), parts: assistant }),
    fc.record({ role: fc.constant("tool" as const), parts: result.map((part): Part[] => [part]) }),
  );
}

/** Ends with the user, and no two turns of the assistant stand side by side. */
function conversationOf(say: Sayable): fc.Arbitrary<Message[]> {
  return fc
    .array(messageOf(say), { maxLength: 8 })
    .map((messages) => [
      ...messages.filter((message, index) => message.role !== "assistant" || messages[index - 1]?.role !== "assistant"),
      { role: "user", parts: [{ type: "text", text: "Go" }] } satisfies Message,
    ]);
}

const chatPart = (part: Part): unknown => (part.type === "image" ? { type: "image_url", image_url: { url: imageUrl(part) } } : part);

const chat: Sayable = {
  roles: ["system", "developer"],
  carrier: false,
  customCalls: true,
  resultErrors: false,
  rawArguments: true,
  order: false,
  oneSystemText: false,
  build: (messages) => ({
    messages: messages.map((message) => {
      const [first] = message.parts;
      if (first?.type === "tool_result") return { role: "tool", tool_call_id: first.call_id, content: first.content.map(chatPart) };
      const reasoning = message.parts.find((part) => part.type === "reasoning");
      const calls = message.parts.flatMap((part): unknown[] =>
        part.type !== "tool_call"
          ? []
          : part.kind === "custom"
            ? [{ id: part.id, type: "custom", custom: { name: part.name, input: part.arguments } }]
            : [{ id: part.id, type: "function", function: { name: part.name, arguments: part.arguments } }],
      );
      return {
        role: message.role,
        content: message.parts.filter((part) => part.type === "text" || part.type === "image").map(chatPart),
        ...(reasoning && { reasoning_content: reasoning.text }),
        ...(calls.length > 0 && { tool_calls: calls }),
      };
    }),
  }),
};

const inputPart = (part: Part): unknown =>
  part.type === "image"
    ? { type: "input_image", image_url: imageUrl(part) }
    : { type: "input_text", text: part.type === "text" ? part.text : "" };

const responses: Sayable = {
  roles: ["system", "developer"],
  carrier: true,
  customCalls: true,
  resultErrors: false,
  rawArguments: true,
  order: true,
  oneSystemText: false,
  build: (messages) => ({
    input: messages.flatMap((message): unknown[] => {
      if (message.role === "user" || message.role === "system" || message.role === "developer")
        return [{ type: "message", role: message.role, content: message.parts.map(inputPart) }];
      return message.parts.map((part) => {
        if (part.type === "text")
          return { type: "message", role: "assistant", content: [{ type: "output_text", text: part.text, annotations: [] }] };
        if (part.type === "reasoning")
          return {
            type: "reasoning",
            summary: [],
            content: [{ type: "reasoning_text", text: part.text }],
            encrypted_content: part.carrier,
          };
        if (part.type === "tool_result")
          return { type: "function_call_output", call_id: part.call_id, output: part.content.map(inputPart) };
        assert.equal(part.type, "tool_call");
        if (part.type !== "tool_call") return null;
        return part.kind === "custom"
          ? { type: "custom_tool_call", call_id: part.id, name: part.name, input: part.arguments }
          : { type: "function_call", call_id: part.id, name: part.name, arguments: part.arguments };
      });
    }),
  }),
};

const block = (part: Part): unknown => {
  if (part.type === "text") return { ...part, cache_control: { type: "ephemeral" } };
  if (part.type === "image") return { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
  if (part.type === "reasoning") return { type: "thinking", thinking: part.text, signature: part.carrier };
  if (part.type === "tool_call") return { type: "tool_use", id: part.id, name: part.name, input: readJson(part.arguments) as unknown };
  return { type: "tool_result", tool_use_id: part.call_id, content: part.content.map(block), is_error: part.is_error };
};

const messages: Sayable = {
  roles: ["system"],
  carrier: true,
  customCalls: false,
  resultErrors: true,
  rawArguments: false,
  order: true,
  oneSystemText: true,
  build(conversation) {
    const [first] = conversation;
    const rest = first?.role === "system" ? conversation.slice(1) : conversation;
    const out: { role: string; content: unknown[] }[] = [];
    // Results and what the user says after them share one user message, as Claude Code writes them.
    let joins = false;
    for (const message of rest) {
      const role = message.role === "tool" ? "user" : message.role;
      const content = message.parts.map(block);
      if (joins && role === "user" && content.length > 0) out.at(-1)?.content.push(...content);
      else out.push({ role, content });
      joins = message.role === "tool";
    }
    return { ...(first?.role === "system" && { system: first.parts.map(block) }), messages: out };
  },
};

const googlePart = (part: Part): unknown => {
  if (part.type === "text") return { text: part.text };
  if (part.type === "image") return { inlineData: { mimeType: "image/png", data: "AA==" } };
  if (part.type === "reasoning") return { text: part.text, thought: true, thoughtSignature: part.carrier };
  if (part.type === "tool_call") return { functionCall: { id: part.id, name: part.name, args: readJson(part.arguments) as unknown } };
  const said = part.content.map((one) => (one.type === "text" ? one.text : "")).join("");
  return {
    functionResponse: {
      id: part.call_id,
      name: "read",
      response: part.is_error ? { error: said } : { output: said },
      parts: part.content.filter((one) => one.type === "image").map(googlePart),
    },
  };
};

const google: Sayable = {
  roles: ["system"],
  carrier: true,
  customCalls: false,
  resultErrors: true,
  rawArguments: false,
  order: true,
  oneSystemText: false,
  oneResultText: true,
  errorsHaveText: true,
  build(conversation) {
    const [first] = conversation;
    const rest = first?.role === "system" ? conversation.slice(1) : conversation;
    const out: { role: string; parts: unknown[] }[] = [];
    // Responses and what the user says after them share one content.
    let joins = false;
    for (const message of rest) {
      const role = message.role === "assistant" ? "model" : message.role === "system" ? "system" : "user";
      const parts = message.parts.map(googlePart);
      if (joins && role === "user" && parts.length > 0) out.at(-1)?.parts.push(...parts);
      else out.push({ role, parts });
      joins = message.role === "tool";
    }
    return { ...(first?.role === "system" && { systemInstruction: { parts: first.parts.map(googlePart) } }), contents: out };
  },
};

const sayable: Record<string, Sayable> = {
  "openai-chat": chat,
  "openai-responses": responses,
  "anthropic-messages": messages,
  "google-generate-content": google,
};

test("openai-completions understands every prompt, text or token ids, alone or in a list of one", () => {
  const prompts = fc.oneof(
    text.map((value) => ({ text: value })),
    fc.array(fc.nat(), { minLength: 1, maxLength: 9 }).map((token_ids) => ({ token_ids })),
  );
  fc.assert(
    fc.property(prompts, fc.boolean(), fc.boolean(), (prompt, isListed, stream) => {
      const said = "text" in prompt ? prompt.text : prompt.token_ids;
      const body = JSON.stringify({ model: "m", stream, prompt: isListed ? [said] : said });
      const request = openaiCompletions.parse(parseJson(new TextEncoder().encode(body)), {});
      assert.deepEqual([request.prompt, request.messages, request.stream], [prompt, [], stream]);
    }),
    { numRuns: 300 },
  );
});

test("openai-responses lists a stored conversation as items that say the same", () => {
  const context = { call_id: "call".padEnd(24, "0"), created: 0, model: "m", native: {}, custom_tools: new Set<string>() };
  fc.assert(
    fc.property(conversationOf(responses), (conversation) => {
      const input = readJson(JSON.stringify(toItems(conversation, context))) as { id: string }[];
      assert.equal(new Set(input.map((item) => item.id)).size, input.length);
      const { messages } = parseResponses({ model: "m", input });
      const plain = (list: Message[]) => list.map((message) => ({ ...message, parts: message.parts.map(withoutDetail) }));
      assert.deepEqual(plain(messages), plain(readJson(JSON.stringify(conversation)) as Message[]));
    }),
    { numRuns: 300 },
  );
});

/** An image's detail is filled in with the API's default. */
function withoutDetail(part: Part): Part {
  if (part.type === "tool_result") return { ...part, content: part.content.map(withoutDetail) as typeof part.content };
  return part.type === "image" ? { type: "image", url: imageUrl(part) } : part;
}

for (const dialect of dialects) {
  if (dialect === openaiCompletions) continue;
  const say = sayable[dialect.name];
  assert.ok(say, `${dialect.name} does not declare what it can say: add it`);
  test(`${dialect.name} understands every conversation that it can say`, () => {
    fc.assert(
      fc.property(conversationOf(say), fc.boolean(), (conversation, stream) => {
        const body = JSON.stringify({ model: "m", max_tokens: 1, stream, ...say.build(conversation) });
        const request = dialect.parse(frozen(parseJson(new TextEncoder().encode(body))), {});
        // fast-check makes objects without a prototype; their JSON is what is compared.
        assert.deepEqual(request.messages, readJson(JSON.stringify(conversation)));
        assert.equal(request.stream, stream);
      }),
      { numRuns: 300 },
    );
  });
}
