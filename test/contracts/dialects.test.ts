/**
 * Every dialect, read by the client that its vendor ships: stored turns are played through `answer` and `writer` by a
 * small server, and what the SDK's own accumulator makes of them must be the turn.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import { TrieRouter } from "hono/router/trie-router";
import OpenAI from "openai";
import { AlidadeError } from "../../base/errors.ts";
import { mintToolCallId } from "../../base/schema/ids.ts";
import type { Turn } from "../../base/schema/message.ts";
import { streamEncoder } from "../../base/wire/framing.ts";
import { parseJson } from "../../base/wire/json.ts";
import { type AnswerContext, type Dialect, type Route, toEvents } from "../../proxy/dialects/dialect.ts";
import { dialects } from "../../proxy/dialects/registry.ts";
import { type Case, callId, cases, faults, isSayable, text, turnOf, usage, wantsObjects } from "./dialect-cases.ts";
import { frozen } from "./frozen.ts";

const refusals: { error: AlidadeError; openai: number; anthropic: number; retried: boolean }[] = [
  { error: new AlidadeError("session_sealed", "The session is sealed."), openai: 400, anthropic: 403, retried: false },
  { error: new AlidadeError("budget_spent", "All 5 turns are spent."), openai: 400, anthropic: 403, retried: false },
  { error: new AlidadeError("unauthorized", "No session has this key."), openai: 401, anthropic: 401, retried: false },
  { error: new AlidadeError("model_unknown", "No such model."), openai: 404, anthropic: 404, retried: false },
  { error: new AlidadeError("request_invalid", "n: no.", { param: "n" }), openai: 400, anthropic: 400, retried: false },
  {
    error: new AlidadeError(
      "context_length_exceeded",
      "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
    ),
    openai: 400,
    anthropic: 400,
    retried: false,
  },
  { error: new AlidadeError("engine_error", "busy", { status: 429 }), openai: 429, anthropic: 429, retried: true },
  { error: new AlidadeError("engine_unreachable", "No engine answers."), openai: 503, anthropic: 503, retried: true },
  { error: new AlidadeError("internal", "Broken."), openai: 500, anthropic: 500, retried: true },
];

/** The turn as a client understood it, in one shape for all SDKs. */
type Seen = {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: string }[];
  end: string;
  usage: unknown;
  carriers: string[];
};

const router = new TrieRouter<[Dialect, Route]>();
for (const dialect of dialects) for (const route of dialect.routes) router.add(route.method, route.path, [dialect, route]);

let served: Case = cases[0] as Case;
let requests = 0;
const server = createServer(async (request, response) => {
  requests++;
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const url = new URL(request.url ?? "", "http://any");
  const found = router.match(request.method ?? "", url.pathname)[0][0] as [[Dialect, Route], Record<string, string>] | undefined;
  assert.ok(found, request.url);
  const [[dialect], params] = found;
  if (request.method === "GET") {
    response.setHeader("content-type", "application/json").end(JSON.stringify(dialect.models?.(["policy", "other"])));
    return;
  }
  const addressed = dialect.address?.({ params, query: Object.fromEntries(url.searchParams) });
  // Parts of a body are read again with the next one: no dialect may change them.
  const body = frozen(parseJson(Buffer.concat(chunks))) as Record<string, unknown>;
  const neutral = dialect.parse({ ...body, ...addressed?.fields }, request.headers as Record<string, string>);
  const context: AnswerContext = {
    call_id: callId,
    created: 1_700_000_000,
    model: neutral.model,
    native: neutral.native,
    custom_tools: new Set(served.custom),
  };
  if (served.refuse) {
    const answer = dialect.error(served.refuse);
    // The retry itself is the SDK's; the pause before it is not what is tested.
    response.writeHead(answer.status, { ...answer.headers, "content-type": "application/json", "retry-after-ms": "1" });
    response.end(JSON.stringify(answer.body));
    return;
  }
  if (!neutral.stream) {
    response.setHeader("content-type", "application/json").end(JSON.stringify(dialect.answer(served.turn, context)));
    return;
  }
  const encoder = streamEncoder(addressed?.framing ?? "sse");
  response.setHeader("content-type", encoder.contentType);
  const writer = dialect.writer(context);
  const frames = [...writer.open(), ...writer.keepAlive()];
  for (const [index, event] of [...toEvents(served.turn, (at) => mintToolCallId(callId, at))].entries()) {
    if (served.fault?.after === index) {
      frames.push(...writer.error(served.fault.error));
      break;
    }
    frames.push(...writer.event(event), ...(event.type === "end" ? [] : writer.keepAlive()));
  }
  response.end(encoder.encode(frames) + encoder.end());
});
before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: "sk-local" });
  anthropic = new Anthropic({ baseURL: base, apiKey: "sk-local" });
  // This one tries again only when told to.
  google = new GoogleGenAI({ apiKey: "sk-local", httpOptions: { baseUrl: base, retryOptions: { attempts: 3, initialDelay: 0.001 } } });
});
after(() => {
  server.close();
  server.closeAllConnections();
});

type Client = {
  ask(stream: boolean): Promise<Seen>;
  expected(turn: Turn, stream: boolean): Partial<Seen>;
};

let openai: OpenAI;
let anthropic: Anthropic;
let google: GoogleGenAI;

const chatClient: Client = {
  async ask(stream) {
    const body = { model: "policy", messages: [{ role: "user" as const, content: "Hi" }] };
    const reasoned: string[] = [];
    const runner = stream ? openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } }) : null;
    runner?.on("chunk", (chunk) => {
      assert.equal(chunk.id, `chatcmpl-${callId}`);
      const delta = chunk.choices[0]?.delta as { reasoning_content?: string } | undefined;
      if (delta?.reasoning_content) reasoned.push(delta.reasoning_content);
    });
    const completion = runner ? await runner.finalChatCompletion() : await openai.chat.completions.create(body);
    const choice = completion.choices[0];
    assert.ok(choice);
    const message = choice.message as typeof choice.message & { reasoning_content?: string };
    return {
      text: message.content ?? "",
      reasoning: stream ? reasoned.join("") : (message.reasoning_content ?? ""),
      calls: (message.tool_calls ?? []).map((one) =>
        one.type === "function"
          ? { id: one.id, name: one.function.name, arguments: one.function.arguments }
          : { id: one.id, name: one.custom.name, arguments: one.custom.input },
      ),
      end: choice.finish_reason,
      usage: completion.usage ?? null,
      carriers: [],
    };
  },
  expected: (turn) => ({
    end: turn.finish_reason === "stop" && callsOf(turn).length > 0 ? "tool_calls" : turn.finish_reason,
    usage:
      turn.usage === usage
        ? {
            prompt_tokens: 100,
            completion_tokens: 20,
            total_tokens: 120,
            prompt_tokens_details: { cached_tokens: 64 },
            completion_tokens_details: { reasoning_tokens: 5 },
          }
        : null,
  }),
};

const responsesClient: Client = {
  async ask(stream) {
    const body = { model: "policy", input: "Hi" };
    const sequence: number[] = [];
    const runner = stream ? openai.responses.stream(body) : null;
    runner?.on("event", (event) => {
      sequence.push(event.sequence_number);
      if (event.type === "response.failed") throw new Error(event.response.error?.message);
    });
    const response = runner ? await runner.finalResponse() : await openai.responses.create(body);
    assert.deepEqual(sequence, [...sequence.keys()], "sequence numbers count up from 0");
    assert.equal(response.id, `resp_${callId}`);
    const ids = response.output.map((item) => item.id);
    assert.equal(new Set(ids).size, ids.length);
    const seen: Seen = { text: response.output_text, reasoning: "", calls: [], end: "", usage: response.usage ?? null, carriers: [] };
    for (const item of response.output) {
      if (item.type === "reasoning") {
        seen.reasoning += (item.content ?? []).map((part) => part.text).join("");
        seen.carriers.push(item.encrypted_content ?? "");
      } else if (item.type === "function_call") seen.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
      else if (item.type === "custom_tool_call") seen.calls.push({ id: item.call_id, name: item.name, arguments: item.input });
    }
    seen.end = response.incomplete_details?.reason ?? response.status ?? "";
    return seen;
  },
  expected: (turn) => ({
    end: turn.finish_reason === "length" ? "max_output_tokens" : turn.finish_reason === "content_filter" ? "content_filter" : "completed",
    usage:
      turn.usage === usage
        ? {
            input_tokens: 100,
            input_tokens_details: { cached_tokens: 64 },
            output_tokens: 20,
            output_tokens_details: { reasoning_tokens: 5 },
            total_tokens: 120,
          }
        : null,
    carriers: reasoningOf(turn) === "" ? [] : [`ali1.${callId}`],
  }),
};

const messagesClient: Client = {
  async ask(stream) {
    const body = { model: "policy", max_tokens: 100, messages: [{ role: "user" as const, content: "Hi" }] };
    const partial: string[] = [];
    const runner = stream ? anthropic.messages.stream(body) : null;
    runner?.on("streamEvent", (event) => {
      if (event.type === "content_block_start" && event.content_block.type === "tool_use") partial.push("");
      if (event.type === "content_block_delta" && event.delta.type === "input_json_delta")
        partial[partial.length - 1] += event.delta.partial_json;
    });
    const message = runner ? await runner.finalMessage() : await anthropic.messages.create(body);
    assert.equal(message.id, `msg_${callId}`);
    const seen: Seen = { text: "", reasoning: "", calls: [], end: message.stop_reason ?? "", usage: null, carriers: [] };
    for (const block of message.content) {
      if (block.type === "text") seen.text += block.text;
      else if (block.type === "thinking") {
        seen.reasoning += block.thinking;
        seen.carriers.push(block.signature);
      } else if (block.type === "tool_use") {
        const raw = stream ? partial[seen.calls.length] : undefined;
        seen.calls.push({ id: block.id, name: block.name, arguments: raw ?? JSON.stringify(block.input) });
      }
    }
    if (message.stop_sequence !== null) seen.end += `:${message.stop_sequence}`;
    const { input_tokens, cache_read_input_tokens, output_tokens } = message.usage;
    seen.usage = { input_tokens, cache_read_input_tokens, output_tokens };
    return seen;
  },
  expected(turn, stream) {
    // This wire wants an object: what is none is text, and the calls' JSON is whole only in a stream.
    const calls = callsOf(turn).filter((one) => isJsonObject(one.arguments));
    const malformed = callsOf(turn).filter((one) => !isJsonObject(one.arguments));
    const reason = { length: "max_tokens", content_filter: "refusal" }[turn.finish_reason as string];
    return {
      text: textOf(turn) + malformed.map((one) => one.arguments).join(""),
      calls: calls.map((one) => ({ ...one, arguments: stream ? one.arguments : JSON.stringify(JSON.parse(one.arguments || "{}")) })),
      end: reason ?? (calls.length > 0 ? "tool_use" : turn.stop === null ? "end_turn" : `stop_sequence:${turn.stop}`),
      usage:
        turn.usage === usage
          ? { input_tokens: 36, cache_read_input_tokens: 64, output_tokens: 20 }
          : { input_tokens: 0, cache_read_input_tokens: null, output_tokens: 0 },
      carriers: reasoningOf(turn) === "" ? [] : [`ali1.${callId}`],
    };
  },
};

const googleClient: Client = {
  async ask(stream) {
    const body = { model: "policy", contents: "Hi", config: { thinkingConfig: { includeThoughts: true } } };
    const pieces = stream
      ? await Array.fromAsync(await google.models.generateContentStream(body))
      : [await google.models.generateContent(body)];
    const seen: Seen = { text: "", reasoning: "", calls: [], end: "", usage: null, carriers: [] };
    for (const piece of pieces) {
      assert.equal(piece.responseId, callId);
      assert.equal(piece.modelVersion, "policy");
      assert.equal(piece.candidates?.length, 1);
      for (const part of piece.candidates?.[0]?.content?.parts ?? []) {
        if (part.functionCall)
          seen.calls.push({
            id: part.functionCall.id ?? "",
            name: part.functionCall.name ?? "",
            arguments: JSON.stringify(part.functionCall.args),
          });
        else if (part.thought) seen.reasoning += part.text ?? "";
        else seen.text += part.text ?? "";
        if (part.thought || part.functionCall) seen.carriers.push(part.thoughtSignature ?? "");
      }
    }
    seen.end = pieces.at(-1)?.candidates?.[0]?.finishReason ?? "";
    seen.usage = pieces.at(-1)?.usageMetadata ?? null;
    return seen;
  },
  expected(turn) {
    // This wire wants an object: what is none is text.
    const calls = callsOf(turn).filter((one) => isJsonObject(one.arguments));
    const malformed = callsOf(turn).filter((one) => !isJsonObject(one.arguments));
    return {
      text: textOf(turn) + malformed.map((one) => one.arguments).join(""),
      calls: calls.map((one) => ({ ...one, arguments: JSON.stringify(JSON.parse(one.arguments || "{}")) })),
      end: { length: "MAX_TOKENS", content_filter: "SAFETY" }[turn.finish_reason as string] ?? "STOP",
      usage:
        turn.usage === usage
          ? { promptTokenCount: 100, cachedContentTokenCount: 64, candidatesTokenCount: 15, thoughtsTokenCount: 5, totalTokenCount: 120 }
          : null,
      carriers: [...turn.message.parts.filter((part) => part.type === "reasoning"), ...calls].map(() => `ali1.${callId}`),
    };
  },
};

const completionClient: Client = {
  async ask(stream) {
    const body = { model: "policy", prompt: "Hi" };
    const seen: Seen = { text: "", reasoning: "", calls: [], end: "", usage: null, carriers: [] };
    const pieces = stream
      ? await Array.fromAsync(await openai.completions.create({ ...body, stream, stream_options: { include_usage: true } }))
      : [await openai.completions.create(body)];
    for (const piece of pieces) {
      assert.equal(piece.id, `cmpl-${callId}`);
      for (const choice of piece.choices) {
        seen.text += choice.text;
        seen.end = choice.finish_reason ?? seen.end;
      }
      seen.usage = piece.usage ?? seen.usage;
    }
    return seen;
  },
  expected: (turn, stream) => ({ ...chatClient.expected(turn, stream), end: turn.finish_reason }),
};

const clients: Record<string, Client> = {
  "openai-chat": chatClient,
  "openai-responses": responsesClient,
  "anthropic-messages": messagesClient,
  "google-generate-content": googleClient,
  "openai-completions": completionClient,
};

function textOf(turn: Turn): string {
  return turn.message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function reasoningOf(turn: Turn): string {
  return turn.message.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
}

function callsOf(turn: Turn): Seen["calls"] {
  return turn.message.parts
    .filter((part) => part.type === "tool_call")
    .map((part, index) => ({ id: mintToolCallId(callId, index), name: part.name, arguments: part.arguments }));
}

function isJsonObject(raw: string): boolean {
  if (raw === "") return true;
  try {
    const value: unknown = JSON.parse(raw);
    return value !== null && typeof value === "object" && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** What a freeform tool's client gets: the text itself, of arguments that are not its wrapper too. */
function unwrapped(rawArguments: string): string {
  return isJsonObject(rawArguments) ? (JSON.parse(rawArguments) as { input: string }).input : rawArguments;
}

/** A body, and the field that the refusal names. */
type BadBody = [unknown, string | null];

const noBodies: BadBody[] = [
  [[], null],
  ["text", null],
  [null, null],
  [5, null],
];

/** What all that have a list of messages under one name or another refuse alike. */
function badMessages(list: string): BadBody[] {
  return [
    ...noBodies,
    [{ [list]: 5, model: "m" }, list],
    [{ [list]: null, model: "m" }, list],
    [{ [list]: [], model: "m" }, list],
    [{ [list]: [{ role: "user", content: "Hi" }] }, "model"],
    [{ [list]: [{ role: "user", content: "Hi" }], model: 5 }, "model"],
    [{ [list]: [5], model: "m" }, `${list}[0]`],
    [{ [list]: [{ role: "robot", content: "Hi" }], model: "m" }, `${list}[0].role`],
    [{ [list]: [{ role: "user", content: 5 }], model: "m" }, `${list}[0].content`],
    [{ [list]: [{ role: "user", content: [{ type: "hologram" }] }], model: "m" }, `${list}[0].content[0].type`],
    [{ [list]: [{ role: "user", content: [5] }], model: "m" }, `${list}[0].content[0]`],
    [{ [list]: [{ role: "user", content: "Hi" }], model: "m", stream: "yes" }, "stream"],
    [{ [list]: [{ role: "user", content: "Hi" }], model: "m", temperature: "hot" }, "temperature"],
    [{ [list]: [{ role: "user", content: "Hi" }], model: "m", tools: {} }, "tools"],
    [{ [list]: [{ role: "user", content: "Hi" }], model: "m", tool_choice: 5 }, "tool_choice"],
  ];
}

const said = { contents: [{ parts: [{ text: "Hi" }] }], model: "m" };
const badBodies: Record<string, BadBody[]> = {
  "openai-chat": badMessages("messages"),
  "openai-responses": badMessages("input"),
  "anthropic-messages": badMessages("messages"),
  "openai-completions": [
    ...noBodies,
    [{ model: "m" }, "prompt"],
    [{ model: "m", prompt: "" }, "prompt"],
    [{ model: "m", prompt: [] }, "prompt"],
    [{ model: "m", prompt: {} }, "prompt"],
    [{ model: "m", prompt: ["a", "b"] }, "prompt"],
    [{ model: "m", prompt: [[1], [2]] }, "prompt"],
    [{ model: "m", prompt: [[]] }, "prompt[0]"],
    [{ model: "m", prompt: [1, -1] }, "prompt[1]"],
    [{ model: "m", prompt: [1, 1.5] }, "prompt[1]"],
    [{ model: "m", prompt: [1, "a"] }, "prompt[1]"],
    [{ prompt: "a" }, "model"],
    [{ model: "m", prompt: "a", best_of: 2 }, "best_of"],
    [{ model: "m", prompt: "a", echo: true }, "echo"],
    [{ model: "m", prompt: "a", suffix: "z" }, "suffix"],
    [{ model: "m", prompt: "a", stop: [5] }, "stop[0]"],
    [{ model: "m", prompt: "a", max_tokens: 0 }, "max_tokens"],
    [{ model: "m", prompt: "a", stream: "yes" }, "stream"],
    [{ model: "m", prompt: "a", temperature: "hot" }, "temperature"],
  ],
  "google-generate-content": [
    ...noBodies,
    [{ ...said, contents: 5 }, "contents"],
    [{ ...said, contents: null }, "contents"],
    [{ ...said, contents: [] }, "contents"],
    [{ ...said, model: undefined }, "model"],
    [{ ...said, model: 5 }, "model"],
    [{ ...said, contents: [5] }, "contents[0]"],
    [{ ...said, contents: [{ role: "robot", parts: [] }] }, "contents[0].role"],
    [{ ...said, contents: [{ parts: 5 }] }, "contents[0].parts"],
    [{ ...said, contents: [{ parts: [5] }] }, "contents[0].parts[0]"],
    [{ ...said, contents: [{ parts: [{ hologram: {} }] }] }, "contents[0].parts[0]"],
    [{ ...said, contents: [{ parts: [{ inlineData: { mimeType: "audio/wav", data: "" } }] }] }, "contents[0].parts[0].inlineData.mimeType"],
    [{ ...said, contents: [{ parts: [{ fileData: { fileUri: "gs://b/o" } }] }] }, "contents[0].parts[0].fileData.fileUri"],
    [{ ...said, contents: [{ role: "model", parts: [{ functionCall: { args: {} } }] }] }, "contents[0].parts[0].functionCall.name"],
    [
      { ...said, contents: [{ role: "model", parts: [{ functionCall: { name: "f", args: "x" } }] }] },
      "contents[0].parts[0].functionCall.args",
    ],
    [
      { ...said, contents: [{ role: "user", parts: [{ functionResponse: { name: "f", response: 5 } }] }] },
      "contents[0].parts[0].functionResponse.response",
    ],
    [{ ...said, contents: [...said.contents, { role: "model", parts: [{ text: "So" }] }] }, "contents"],
    [{ ...said, systemInstruction: { parts: [{ inlineData: {} }] } }, "systemInstruction.parts[0]"],
    [{ ...said, stream: "yes" }, "stream"],
    [{ ...said, cachedContent: "cachedContents/1" }, "cachedContent"],
    [{ ...said, generationConfig: 5 }, "generationConfig"],
    [{ ...said, generationConfig: { temperature: "hot" } }, "generationConfig.temperature"],
    [{ ...said, generationConfig: { responseModalities: ["TEXT", "IMAGE"] } }, "generationConfig.responseModalities"],
    [{ ...said, generationConfig: { responseMimeType: "text/x.enum" } }, "generationConfig.responseMimeType"],
    [{ ...said, tools: {} }, "tools"],
    [{ ...said, tools: [{ functionDeclarations: [{}] }] }, "tools[0].functionDeclarations[0].name"],
    [{ ...said, toolConfig: 5 }, "toolConfig"],
    [{ ...said, toolConfig: { functionCallingConfig: { mode: "SOMETIMES" } } }, "toolConfig.functionCallingConfig.mode"],
    [
      { ...said, toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } } },
      "toolConfig.functionCallingConfig.allowedFunctionNames",
    ],
  ],
};

for (const dialect of dialects) {
  const client = clients[dialect.name];
  assert.ok(client, `${dialect.name} has no SDK client in this suite: add one`);

  for (const one of cases) {
    if (!isSayable(dialect, one)) continue;
    for (const stream of [true, false]) {
      test(`${dialect.name} says ${one.title}${stream ? ", streaming" : ""}`, async () => {
        served = one;
        const seen = await client.ask(stream);
        const calls = callsOf(one.turn).map((sampled) => (one.custom ? { ...sampled, arguments: unwrapped(sampled.arguments) } : sampled));
        const expected = {
          text: textOf(one.turn),
          reasoning: reasoningOf(one.turn),
          calls,
          carriers: [],
          ...client.expected(one.turn, stream),
        };
        // Streamed arguments of a call without any: the SDK has nothing to put together.
        const blank = (list: Seen["calls"]) => list.map((item) => ({ ...item, arguments: item.arguments === "" ? "{}" : item.arguments }));
        const same = wantsObjects.includes(dialect.name) ? blank : (list: Seen["calls"]) => list;
        // The SDK parses numbers; the text of the answer itself is tested in test/proxy/dialects/anthropic-messages.test.ts.
        assert.deepEqual({ ...seen, calls: same(seen.calls) }, { ...expected, calls: same(expected.calls) });
      });
    }
  }

  for (const one of faults) {
    test(`${dialect.name} says ${one.title}`, async () => {
      served = one;
      await assert.rejects(client.ask(true), (error: Error) => error.message.includes(one.fault?.error.message ?? ""));
    });
  }

  for (const { error, ...wanted } of refusals) {
    test(`${dialect.name} says ${error.code} (${error.status}) ${wanted.retried ? "is worth a retry" : "once"}`, async () => {
      served = { title: "", turn: turnOf([]), refuse: error };
      requests = 0;
      const status = dialect.name === "anthropic-messages" ? wanted.anthropic : wanted.openai;
      await assert.rejects(client.ask(true), (thrown: unknown) => {
        if (thrown instanceof ApiError) {
          // This SDK keeps, for an answer that is no success, the status and the body's text.
          const said = (JSON.parse(thrown.message) as { error: { code: number; message: string; details: { reason: string }[] } }).error;
          assert.deepEqual([thrown.status, said.code, said.details[0]?.reason.toLowerCase()], [status, status, error.code]);
          if (error.code === "context_length_exceeded")
            assert.match(said.message, /^The input token count \(5000\) exceeds the maximum number of tokens allowed \(4096\)/);
          return true;
        }
        assert.ok(thrown instanceof OpenAI.APIError || thrown instanceof Anthropic.APIError, String(thrown));
        assert.equal(thrown.status, status);
        assert.equal(thrown.headers?.get("x-alidade-error"), error.code);
        if (thrown instanceof OpenAI.APIError) assert.equal(thrown.param, error.param);
        if (error.code === "context_length_exceeded" && thrown instanceof OpenAI.APIError) assert.equal(thrown.code, error.code);
        if (error.code === "context_length_exceeded" && thrown instanceof Anthropic.APIError)
          assert.match(thrown.message, /prompt is too long: 5000 tokens > 4096 maximum/);
        return true;
      });
      assert.equal(requests, wanted.retried ? 3 : 1, "the SDK tries twice again, or not at all");
    });
  }

  test(`${dialect.name} answers are a pure function of turn and context, in both forms`, () => {
    for (const one of cases) {
      const context: AnswerContext = { call_id: callId, created: 5, model: "policy", native: {}, custom_tools: new Set(one.custom) };
      assert.equal(JSON.stringify(dialect.answer(one.turn, context)), JSON.stringify(dialect.answer(one.turn, context)));
      const play = () => {
        const writer = dialect.writer(context);
        return [...toEvents(one.turn, (index) => mintToolCallId(callId, index))].flatMap((event) => writer.event(event));
      };
      assert.deepEqual(play(), play());
    }
  });

  test(`${dialect.name} does not answer with a turn that the engine gave up`, () => {
    const context: AnswerContext = { call_id: callId, created: 5, model: "policy", native: {}, custom_tools: new Set() };
    for (const reason of ["abort", "error"] as const)
      assert.throws(() => dialect.answer(turnOf([text("half")], reason), context), { code: "engine_aborted" });
  });

  test(`${dialect.name} refuses bodies that are no request, and names the field`, () => {
    const bad = badBodies[dialect.name];
    assert.ok(bad, `${dialect.name} has no bad bodies in this suite: add some`);
    for (const [body, param] of bad)
      assert.throws(
        () => dialect.parse(body, {}),
        (error: unknown) => {
          assert.ok(error instanceof AlidadeError, String(error));
          assert.equal(error.code, "request_invalid");
          assert.equal(error.status, 400);
          assert.equal(error.param, param, `${JSON.stringify(body)}: ${error.message}`);
          return true;
        },
      );
  });
}

test("one list of models is read by both vendors' SDKs", async () => {
  const names: string[] = [];
  for await (const model of openai.models.list()) names.push(model.id);
  for await (const model of anthropic.models.list()) names.push(`${model.id} ${model.display_name}`);
  assert.deepEqual(names, ["policy", "other", "policy policy", "other other"]);
});

test("no two dialects claim a route", () => {
  const routes = dialects.flatMap((dialect) => dialect.routes.map((route) => `${route.method} ${route.path}`));
  assert.equal(new Set(routes).size, routes.length);
});
