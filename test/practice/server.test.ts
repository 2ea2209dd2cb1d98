import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { z } from "zod";
import { engineNamed } from "../../engines/registry.ts";
import { PracticeModel } from "../../practice/model/practice-model.ts";
import { createPracticeServer } from "../../practice/server.ts";
import { decodeSse } from "../fakes/engines/decode-sse.ts";

let server: Server;
let url: string;

before(async () => {
  server = createPracticeServer(new PracticeModel({ name: "practice", seed: 1, maxModelLen: 4096 }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

const Logprob = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.number()), top_logprobs: z.array(z.unknown()) });
const Logprobs = z.object({ content: z.array(Logprob) }).nullable();
const ToolCall = z.object({
  index: z.number().optional(),
  id: z.string().regex(/^chatcmpl-tool-[0-9a-f]+$/),
  type: z.literal("function"),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
const Usage = z.looseObject({
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  total_tokens: z.number(),
  prompt_tokens_details: z.object({ cached_tokens: z.number() }),
});
const Reply = z.looseObject({
  id: z.string(),
  object: z.literal("chat.completion"),
  prompt_token_ids: z.array(z.number()).nullable(),
  choices: z.tuple([
    z.looseObject({
      message: z.looseObject({
        content: z.string().nullable(),
        reasoning: z.string().nullable(),
        tool_calls: z.array(ToolCall).optional(),
      }),
      logprobs: Logprobs,
      finish_reason: z.string(),
      stop_reason: z.union([z.string(), z.number()]).nullable(),
      token_ids: z.array(z.number()).nullable(),
    }),
  ]),
  usage: Usage,
});
const Chunk = z.looseObject({
  object: z.literal("chat.completion.chunk"),
  prompt_token_ids: z.array(z.number()).nullish(),
  choices: z.array(
    z.looseObject({
      delta: z.looseObject({ content: z.string().nullish(), reasoning: z.string().nullish(), tool_calls: z.array(ToolCall).optional() }),
      logprobs: Logprobs,
      finish_reason: z.string().nullable(),
      stop_reason: z.union([z.string(), z.number()]).nullish(),
      token_ids: z.array(z.number()).nullish(),
    }),
  ),
  usage: Usage.optional(),
});
const Refusal = z.object({ error: z.object({ message: z.string(), type: z.string(), param: z.string().nullable(), code: z.number() }) });

async function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<{ status: number; body: unknown }> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(url + path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: text });
  return { status: response.status, body: await response.json() };
}

const tools = [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }];
const everything = { model: "practice", logprobs: true, top_logprobs: 0, return_token_ids: true, seed: 11 };
const hello = { ...everything, messages: [{ role: "user", content: "hello" }] };

async function ask(body: object): Promise<z.infer<typeof Reply>> {
  const reply = await post("/v1/chat/completions", body);
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return Reply.parse(reply.body);
}

async function stream(body: object): Promise<z.infer<typeof Chunk>[]> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
  });
  assert.ok(response.body);
  const frames = await Array.fromAsync(decodeSse(response.body));
  assert.equal(frames.pop()?.data, "[DONE]");
  return frames.map(({ data }) => Chunk.parse(JSON.parse(data)));
}

const spoken = (text: string) => ({ ...hello, tools, structured_outputs: { choice: [text] } });
const call = (name: string, text: string) => `<tool_call>\n{"name": "${name}", "arguments": ${text}}\n</tool_call>`;

const requests: [title: string, body: object][] = [
  ["a free turn", { ...hello, max_tokens: 200 }],
  ["a turn cut by its length", { ...hello, max_tokens: 3 }],
  ["a turn cut by a stop string", { ...hello, max_tokens: 300, stop: ["e", "t"] }],
  ["reasoning, text and two calls", spoken(`<think>\nHm.\n</think>\n\nLook.\n${call("bash", '{"a":  1}')}\n${call("bash", "{}")}`)],
  ["a call that is none", spoken(`Look.\n${call("bash", "{bad}")}`)],
  ["text that a stop string held back to the end", { ...spoken(`Look.\n${call("bash", "{}")}`), stop: `Look.\n${call("bash", "{}")}!` }],
  ["characters in parts", spoken("é漢字 🧭")],
];

for (const [title, body] of requests) {
  test(`${title}: streamed and whole are the same, and ids, logprobs and usage agree`, async () => {
    const whole = await ask(body);
    const chunks = await stream(body);
    const [choice] = whole.choices;
    const parts = chunks.flatMap((chunk) => chunk.choices);
    const ids = parts.flatMap((part) => part.token_ids ?? []);
    assert.deepEqual(ids, choice.token_ids);
    assert.equal(whole.usage.completion_tokens, ids.length);
    assert.equal(choice.logprobs?.content.length, ids.length);
    assert.deepEqual(
      parts.flatMap((part) => part.logprobs?.content ?? []),
      choice.logprobs?.content,
    );
    for (const part of parts.slice(1)) assert.equal(part.token_ids?.length, part.logprobs?.content.length ?? 0);
    const said = (field: "content" | "reasoning") => parts.map((part) => part.delta[field] ?? "").join("");
    assert.equal(said("content"), choice.message.content ?? "");
    assert.equal(said("reasoning"), choice.message.reasoning ?? "");
    const calls = parts.flatMap((part) => part.delta.tool_calls ?? []);
    assert.deepEqual(
      calls.map((one) => one.function),
      (choice.message.tool_calls ?? []).map((one) => one.function),
    );
    assert.deepEqual(
      calls.map((one) => one.index),
      [...calls.keys()],
    );
    const last = parts.at(-1);
    assert.equal(last?.finish_reason, choice.finish_reason);
    assert.equal(last?.stop_reason ?? null, choice.stop_reason);
    assert.ok(parts.slice(0, -1).every((part) => part.finish_reason === null));
    assert.deepEqual(chunks[0]?.prompt_token_ids, whole.prompt_token_ids);
    assert.ok(chunks.slice(1).every((chunk) => chunk.prompt_token_ids === undefined));
    assert.equal(whole.prompt_token_ids?.length, whole.usage.prompt_tokens);
    assert.deepEqual(chunks.at(-1)?.choices, []);
    assert.equal(chunks.at(-1)?.usage?.completion_tokens, ids.length);
  });
}

for (const [title, body] of requests) {
  test(`${title}: a prompt given as ids is sampled on as it stands, and read as chat reads it`, async () => {
    const rendered = await ask(body);
    const ids = [...(rendered.prompt_token_ids ?? [])];
    const given = await ask({ ...body, messages: [{ role: "user", content: "unread" }], kv_transfer_params: { prompt_token_ids: ids } });
    const said = ({ choices: [choice] }: z.infer<typeof Reply>) => [
      choice.token_ids,
      choice.logprobs?.content.map(({ logprob }) => logprob),
      [choice.message.content, choice.message.reasoning, choice.message.tool_calls?.map((one) => one.function)],
      [choice.finish_reason, choice.stop_reason],
    ];
    assert.deepEqual(given.prompt_token_ids, ids);
    assert.deepEqual(said(given), said(rendered));
    const onward = await ask({ ...body, kv_transfer_params: { prompt_token_ids: [...ids, ...(rendered.choices[0].token_ids ?? []), 7] } });
    assert.deepEqual(onward.prompt_token_ids?.length, ids.length + rendered.usage.completion_tokens + 1);
  });
}

test("a turn says why it ended", async () => {
  const end = async (body: object) => {
    const [choice] = (await ask({ ...hello, ...body })).choices;
    return [choice.finish_reason, choice.stop_reason];
  };
  assert.deepEqual(await end({ max_tokens: 2 }), ["length", null]);
  assert.deepEqual(await end({ structured_outputs: { choice: ["yes"] } }), ["stop", null]);
  assert.deepEqual(await end({ structured_outputs: { choice: ["yes, no"] }, stop: "," }), ["stop", ","]);
  assert.deepEqual(await end({ structured_outputs: { choice: ["!"] }, stop_token_ids: [33] }), ["stop", 33]);
  assert.deepEqual(await end({ structured_outputs: { choice: [call("bash", "{}")] }, tools }), ["tool_calls", null]);
  assert.deepEqual(await end({ structured_outputs: { choice: [call("bash", "{}")] }, tools, tool_choice: "none" }), ["stop", null]);
});

test("a stop string is cut from the text and stays in the ids", async () => {
  const { choices, usage } = await ask({ ...hello, structured_outputs: { choice: ["one STOP two"] }, stop: ["STOP"] });
  assert.equal(choices[0].message.content, "one ");
  assert.ok(usage.completion_tokens >= 4);
  assert.equal(choices[0].token_ids?.length, usage.completion_tokens);
});

test("what might have been a stop string is said when it was none", async () => {
  const [choice] = (await ask({ ...spoken(`Look.\n${call("bash", "{}")}`), stop: `Look.\n${call("bash", "{}")}!` })).choices;
  assert.equal(choice.message.content, "Look.");
  assert.equal(choice.message.tool_calls?.length, 1);
  assert.equal(choice.finish_reason, "tool_calls");
});

test("a call's arguments are the text that was sampled, and a turn of calls alone has no content", async () => {
  const [choice] = (await ask(spoken(call("bash", '{ "b":1,\n"a" : "\\u00e9" }')))).choices;
  assert.equal(choice.message.tool_calls?.[0]?.function.arguments, '{ "b":1,\n"a" : "\\u00e9" }');
  assert.equal(choice.message.content, null);
});

test("arguments that cannot be parsed stay text, and are no call", async () => {
  const [choice] = (await ask(spoken(call("bash", '{"a": ')))).choices;
  assert.equal(choice.message.content, call("bash", '{"a": '));
  assert.equal(choice.message.tool_calls, undefined);
  assert.equal(choice.finish_reason, "stop");
});

test("prompt_logprobs of the completions route give back what chat recorded", async () => {
  const chat = await ask({ ...hello, max_tokens: 50 });
  const [choice] = chat.choices;
  const ids = [...(chat.prompt_token_ids ?? []), ...(choice.token_ids ?? [])];
  const scored = await post("/v1/completions", { prompt: ids, max_tokens: 1, prompt_logprobs: 1, return_token_ids: true, logprobs: 0 });
  const Entry = z.record(z.string(), z.object({ logprob: z.number(), rank: z.number().int().min(1), decoded_token: z.string() }));
  const Scored = z.looseObject({
    choices: z.tuple([
      z.looseObject({
        prompt_logprobs: z.array(Entry.nullable()),
        prompt_token_ids: z.array(z.number()),
        token_ids: z.array(z.number()).length(1),
        logprobs: z.looseObject({ token_logprobs: z.array(z.number()).length(1), tokens: z.array(z.string()).length(1) }),
      }),
    ]),
  });
  const [completion] = Scored.parse(scored.body).choices;
  assert.deepEqual(completion.prompt_token_ids, ids);
  assert.equal(completion.prompt_logprobs[0], null);
  const first = chat.usage.prompt_tokens;
  for (const [at, { logprob }] of choice.logprobs?.content.entries() ?? []) {
    const entry = completion.prompt_logprobs[first + at]?.[String(ids[first + at])];
    assert.ok(Math.abs((entry?.logprob ?? Number.NaN) - logprob) < 1e-5);
  }
});

test("return_tokens_as_token_ids names tokens of logprobs by their ids, in both routes", async () => {
  const numbered = { ...hello, max_tokens: 4, top_logprobs: 3, return_tokens_as_token_ids: true };
  const [choice] = (await ask(numbered)).choices;
  const names = (choice.token_ids ?? []).map((id) => `token_id:${id}`);
  assert.deepEqual(
    choice.logprobs?.content.map(({ token }) => token),
    names,
  );
  for (const { top_logprobs } of choice.logprobs?.content ?? [])
    for (const entry of top_logprobs) assert.match(z.looseObject({ token: z.string() }).parse(entry).token, /^token_id:\d+$/);
  const answer = await post("/v1/completions", { ...numbered, prompt: "hello", logprobs: 2 });
  const Completion = z.looseObject({
    choices: z.tuple([
      z.looseObject({
        token_ids: z.array(z.number()),
        logprobs: z.looseObject({ tokens: z.array(z.string()), top_logprobs: z.array(z.record(z.string(), z.number())) }),
      }),
    ]),
  });
  const [text] = Completion.parse(answer.body).choices;
  assert.deepEqual(
    text.logprobs.tokens,
    text.token_ids.map((id) => `token_id:${id}`),
  );
  for (const [at, listed] of text.logprobs.top_logprobs.entries()) assert.ok(`token_id:${text.token_ids[at]}` in listed);
});

test("a prompt of ids continues the same conversation as its text", async () => {
  const text = await post("/v1/completions", { prompt: "hello <|im_start|>", seed: 3, max_tokens: 20 });
  const tokens = z
    .looseObject({ tokens: z.array(z.number()) })
    .parse((await post("/tokenize", { prompt: "hello <|im_start|>" })).body).tokens;
  const ids = await post("/v1/completions", { prompt: tokens, seed: 3, max_tokens: 20 });
  const Text = z.looseObject({ choices: z.tuple([z.looseObject({ text: z.string(), finish_reason: z.string() })]) });
  assert.deepEqual(Text.parse(ids.body).choices, Text.parse(text.body).choices);
});

test("tokenize renders what chat reads, and detokenize shows it with its markers", async () => {
  const { prompt_token_ids } = await ask({ ...hello, max_tokens: 1 });
  const { body } = await post("/tokenize", { model: "practice", messages: hello.messages, return_token_strs: true });
  const tokenized = z.object({
    count: z.number(),
    max_model_len: z.literal(4096),
    tokens: z.array(z.number()),
    token_strs: z.array(z.string()),
  });
  const { count, tokens, token_strs } = tokenized.parse(body);
  assert.deepEqual(tokens, prompt_token_ids);
  assert.equal(count, tokens.length);
  assert.equal(token_strs[0], "<|im_start|>");
  const text = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n";
  assert.deepEqual((await post("/detokenize", { tokens })).body, { prompt: text });
});

test("health, version and models answer", async () => {
  assert.equal((await fetch(`${url}/health`)).status, 200);
  assert.equal(z.object({ version: z.string() }).safeParse(await (await fetch(`${url}/version`)).json()).success, true);
  const Models = z.looseObject({ data: z.tuple([z.looseObject({ id: z.literal("practice"), max_model_len: z.literal(4096) })]) });
  assert.equal(Models.safeParse(await (await fetch(`${url}/v1/models`)).json()).success, true);
});

const refusals: [title: string, path: string, body: unknown, status: number, message: RegExp, param?: string][] = [
  ["another model", "/v1/chat/completions", { ...hello, model: "gpt" }, 404, /`gpt` does not exist.*practice/, "model"],
  ["a body that is no JSON", "/v1/chat/completions", "{bad", 400, /no valid JSON/],
  ["no messages", "/v1/chat/completions", { ...hello, messages: [] }, 400, /messages/, "messages"],
  ["a negative temperature", "/v1/chat/completions", { ...hello, temperature: -1 }, 400, /temperature/, "temperature"],
  ["too many top logprobs", "/v1/chat/completions", { ...hello, top_logprobs: 50 }, 400, /top_logprobs/, "top_logprobs"],
  ["an image without a URL", "/v1/chat/completions", { messages: [{ role: "user", content: [{ type: "image_url" }] }] }, 400, /image_url/],
  [
    "a sound",
    "/v1/chat/completions",
    { messages: [{ role: "user", content: [{ type: "input_audio" }] }] },
    400,
    /text and images.*input_audio/,
  ],
  ["a grammar that it has not", "/v1/chat/completions", { ...hello, structured_outputs: { regex: "a" } }, 400, /only `choice` and `json`/],
  ["no choice at all", "/v1/chat/completions", { ...hello, structured_outputs: { choice: [] } }, 400, /choice/],
  ["an id that is no token", "/v1/completions", { prompt: [1, 1027] }, 400, /Token id 1027 is out of vocabulary/],
  ["an id to decode that is no token", "/detokenize", { tokens: [5000] }, 400, /Token id 5000/],
  ["no tokens to sample", "/v1/completions", { prompt: "a", max_tokens: 0 }, 400, /max_tokens/, "max_tokens"],
];

for (const [title, path, body, status, message, param] of refusals) {
  test(`${title} is refused in words`, async () => {
    const reply = await post(path, body);
    assert.equal(reply.status, status);
    const { error } = Refusal.parse(reply.body);
    assert.equal(error.code, status);
    assert.match(error.message, message);
    if (param !== undefined) assert.equal(error.param, param);
  });
}

test("a prompt that is too long is refused before anything streams, with both numbers", async () => {
  const body = { ...hello, messages: [{ role: "user", content: "x1 ".repeat(4096) }], stream: true };
  const { error } = Refusal.parse((await post("/v1/chat/completions", body)).body);
  assert.match(error.message, /maximum context length.*4096 tokens.*prompt has \d{4,} tokens/);
  assert.equal(error.code, 400);
});

test("max_tokens is cut to what the context has room for", async () => {
  const body = { prompt: new Array(4090).fill(97), max_tokens: 1000, logit_bias: { 1017: -100 } };
  const Length = z.looseObject({ choices: z.tuple([z.looseObject({ finish_reason: z.literal("length") })]), usage: Usage });
  assert.equal(Length.parse((await post("/v1/completions", body)).body).usage.total_tokens, 4096);
});

test("a body over the limit is refused without being kept", async () => {
  const sent = httpRequest(`${url}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" } });
  sent.on("error", () => {});
  const answered = once(sent, "response");
  const piece = Buffer.alloc(1024 * 1024, 32);
  for (let count = 0; count < 40; count += 1) sent.write(piece);
  const [response] = await answered;
  assert.equal(response.statusCode, 413);
  sent.destroy();
});

test("other content types and unknown paths are refused as vLLM does", async () => {
  assert.equal((await post("/v1/completions", "{}", { "content-type": "text/plain" })).status, 400);
  assert.equal((await post("/nope", {})).status, 404);
  assert.equal((await fetch(`${url}/v1/completions`)).status, 405);
});

test("unknown fields are ignored, and X-Request-Id becomes the id", async () => {
  const reply = await post("/v1/chat/completions", { ...hello, max_tokens: 1, made_up: true }, { "x-request-id": "call42" });
  assert.equal(Reply.parse(reply.body).id, "chatcmpl-call42");
});

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)`, "m").exec(text)?.[1]);
}

for (const streamed of [true, false]) {
  test(`a client that leaves a ${streamed ? "stream" : "whole answer"} stops the generation`, async () => {
    const leaves = new AbortController();
    const body = JSON.stringify({ ...hello, stream: streamed, max_tokens: 4000, logit_bias: { 1017: -100 } });
    const options = { method: "POST", headers: { "content-type": "application/json" }, body, signal: leaves.signal };
    const before = await metric("vllm:generation_tokens_total");
    const gone = fetch(`${url}/v1/chat/completions`, options).then((response) => response.text());
    const patience = { signal: AbortSignal.timeout(20_000) };
    while ((await metric("vllm:generation_tokens_total")) < before + 5) await sleep(1, undefined, patience);
    leaves.abort();
    await assert.rejects(gone);
    while ((await metric("vllm:num_requests_running")) > 0) await sleep(1, undefined, patience);
    const stopped = await metric("vllm:generation_tokens_total");
    assert.ok(stopped < before + 4000, `${stopped - before} tokens`);
  });
}

test("a long prompt leaves room for others", async () => {
  const order: string[] = [];
  const prompt = Array.from({ length: 4000 }, (_, at) => (at * 7919) % 1000);
  const long = post("/v1/completions", { prompt, max_tokens: 1 }).then(() => order.push("long"));
  const short = post("/v1/completions", { prompt: "a", max_tokens: 1 }).then(() => order.push("short"));
  await Promise.all([long, short]);
  assert.deepEqual(order, ["short", "long"]);
});

test("the official client streams from it", async () => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  const extra = { structured_outputs: { choice: [`Look.\n${call("bash", '{"command": "ls"}')}`] } };
  const turn = client.chat.completions.stream({
    model: "practice",
    messages: [{ role: "user", content: "hi" }],
    tools: [{ type: "function", function: { name: "bash", parameters: {} } }],
    ...extra,
  });
  const message = await turn.finalMessage();
  assert.equal(message.content, "Look.");
  const [first] = message.tool_calls ?? [];
  assert.ok(first?.type === "function");
  assert.deepEqual(first.function.name, "bash");
  assert.equal(first.function.arguments, '{"command": "ls"}');
  await assert.rejects(client.chat.completions.create({ model: "x", messages: [{ role: "user", content: "hi" }] }), { status: 404 });
});

test("logprobs reach a client of the adapter with each token, and a part of a character has no bytes", async () => {
  const text = "naïve 日本 😀";
  const adapter = engineNamed("vllm").create({ baseUrl: url, apiKey: null });
  const request = {
    model: "practice",
    messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "Hi" }] }],
    tools: [],
    tool_choice: null,
    sampling: { structured_outputs: { choice: [text] } },
    call_id: "call1",
    token_logprobs: { top: 2 },
  };
  const events = await Array.fromAsync(adapter.sample(request, AbortSignal.timeout(60_000)));
  await adapter.close();
  const tokens = events.flatMap((event) => (event.type === "tokens" ? (event.tokens ?? []) : []));
  const told = tokens.flatMap(({ bytes }) => bytes ?? [0]);
  assert.match(String(Buffer.from(told)), /^na(\0+|ï)ve (\0+|日)(\0+|本) \0+<\|im_end\|>$/);
  assert.ok(tokens.every(({ logprob, top }) => typeof logprob === "number" && top.length > 0));
});
