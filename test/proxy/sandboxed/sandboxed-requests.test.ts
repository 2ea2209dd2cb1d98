/** What a sandboxed client may not hand to the engine: addresses to fetch from, and parameters that are the operator's. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { imageName } from "../../../base/media/stored-picture.ts";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import type { Network } from "../../../base/wire/network.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const data = `data:image/png;base64,${pixel}`;
const sandboxed: Partial<SessionSpec> = { sandboxed: true };

/** The same image in every place where a dialect has one. */
const requests: Record<string, (url: string) => { path: string; body: Record<string, unknown> }> = {
  "chat, an object": (url) => chat([{ type: "image_url", image_url: { url } }]),
  "chat, a string": (url) => chat([{ type: "image_url", image_url: url }]),
  "chat, a tool's result": (url) => ({
    path: "/v1/chat/completions",
    body: {
      model: "m",
      messages: [
        { role: "user", content: "look" },
        { role: "assistant", tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "c1", content: [{ type: "image_url", image_url: { url } }] },
      ],
    },
  }),
  "responses, a message": (url) => ({
    path: "/v1/responses",
    body: { model: "m", input: [{ role: "user", content: [{ type: "input_image", image_url: url }] }] },
  }),
  "responses, a tool's result": (url) => ({
    path: "/v1/responses",
    body: {
      model: "m",
      input: [
        { role: "user", content: "look" },
        { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: [{ type: "input_image", image_url: url }] },
      ],
    },
  }),
  "messages, a source": (url) => messages([{ type: "image", source: { type: "url", url } }]),
  "messages, a tool's result": (url) => ({
    path: "/v1/messages",
    body: {
      model: "m",
      max_tokens: 9,
      messages: [
        { role: "user", content: "look" },
        { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "f", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: [{ type: "image", source: { type: "url", url } }] }] },
      ],
    },
  }),
  "messages, within a document": (url) =>
    messages([{ type: "document", source: { type: "content", content: [{ type: "image", source: { type: "url", url } }] } }]),
  "google, a file": (url) => ({
    path: "/v1beta/models/m:generateContent",
    body: { contents: [{ role: "user", parts: [{ fileData: { fileUri: url, mimeType: "image/png" } }] }] },
  }),
  "a count of tokens": (url) => ({ ...messages([{ type: "image", source: { type: "url", url } }]), path: "/v1/messages/count_tokens" }),
};

function chat(content: unknown[]) {
  return { path: "/v1/chat/completions", body: { model: "m", messages: [{ role: "user", content }] } };
}
function messages(content: unknown[]) {
  return { path: "/v1/messages", body: { model: "m", max_tokens: 9, messages: [{ role: "user", content }] } };
}

for (const [name, request] of Object.entries(requests))
  for (const url of [
    "http://169.254.169.254/latest/meta-data/",
    "https://example.com/x.png",
    "file:///etc/passwd",
    "data:text/html,hi",
    "ftp://x/y",
  ])
    test(`an image outside the request reaches no engine from a sandbox (${name}, ${url})`, async () => {
      await using at = await proxyAt(() => ({ text: "ok" }));
      const { path, body } = request(url);
      const response = await (await at.open(sandboxed)).post(path, body);
      assert.equal(response.status, 400);
      const { error } = (await response.json()) as { error: { message: string } };
      assert.match(error.message, /data:image\/png;base64|fileUri/);
      assert.deepEqual(at.engine.requests, []);
    });

test("an image that travels in the request reaches the engine from a sandbox as it is", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open(sandboxed);
  const { path, body } = chat([{ type: "image_url", image_url: { url: data } }]);
  assert.equal((await client.post(path, body)).status, 200);
  assert.ok(at.engine.bodies[0]?.includes(data));
});

test("a person's own session may name an image", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const { path, body } = chat([{ type: "image_url", image_url: { url: "https://example.com/x.png" } }]);
  assert.equal((await (await at.open()).post(path, body)).status, 200);
});

test("a conversation that was opened with an image outside is not gone on from", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open(sandboxed);
  const item = { role: "user", content: [{ type: "input_image", image_url: "http://10.0.0.1/x.png" }] };
  const { id } = (await (await client.post("/v1/conversations", { items: [item] })).json()) as { id: string };
  assert.equal((await client.post("/v1/responses", { model: "m", conversation: id, input: "go" })).status, 400);
  assert.deepEqual(at.engine.requests, []);
});

const operators: Record<string, unknown> = {
  chat_template: "{{ 'secret' }}",
  chat_template_kwargs: { enable_thinking: false, add_generation_prompt: false },
  mm_processor_kwargs: { num_crops: 999 },
  media_io_kwargs: { video: { num_frames: 1e9 } },
  guided_json: {},
  guided_regex: "a+",
  guided_choice: ["yes"],
  guided_grammar: "root ::= x",
  structured_outputs: { choice: ["yes"] },
  documents: [{ title: "t", text: "x" }],
  stop_token_ids: [1],
  ignore_eos: true,
  min_tokens: 9,
  bad_words: ["no"],
  allowed_token_ids: [5],
  logit_bias: { 5: 100 },
  thinking_token_budget: 0,
  add_special_tokens: true,
  vllm_xargs: { a: "b" },
};

for (const [field, value] of Object.entries(operators))
  test(`${field} is refused from a sandbox by its name, unless the operator allows it`, async () => {
    await using at = await proxyAt(() => ({ text: "ok" }));
    for (const request of [chat([{ type: "text", text: "hi" }]), messages([{ type: "text", text: "hi" }])]) {
      const refused = await (await at.open(sandboxed)).post(request.path, { ...request.body, [field]: value });
      assert.equal(refused.status, 400);
      assert.match(((await refused.json()) as { error: { message: string } }).error.message, new RegExp(`^${field}: `));
    }
    assert.deepEqual(at.engine.requests, []);
    const { path, body } = chat([{ type: "text", text: "hi" }]);
    const allowed = await at.open({ ...sandboxed, allow_fields: [field] });
    assert.equal((await allowed.post(path, { ...body, [field]: value })).status, 200);
    assert.deepEqual(at.engine.requests[0]?.[field], value);
  });

test("what harnesses send and no engine reads is recorded and goes nowhere", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open(sandboxed);
  const vendors = {
    ...{
      store: false,
      metadata: { a: "b" },
      user: "me",
      prompt_cache_key: "k",
      service_tier: "auto",
      verbosity: "low",
      client_metadata: {},
    },
    ...{ kv_transfer_params: { prompt_token_ids: [1, 2] }, priority: -9, cache_salt: "x", return_tokens_as_token_ids: true },
  };
  const known = { temperature: 0.3, top_p: 0.9, seed: 4, stop: ["x"], max_tokens: 9, reasoning_effort: "low", parallel_tool_calls: true };
  const { path, body } = chat([{ type: "text", text: "hi" }]);
  assert.equal((await client.post(path, { ...body, ...vendors, ...known, enable_thinking: false })).status, 200);
  const sent = at.engine.requests[0] ?? assert.fail();
  for (const field of Object.keys(vendors)) assert.notDeepEqual(sent[field], vendors[field as keyof typeof vendors]);
  assert.deepEqual([sent.temperature, sent.top_p, sent.max_tokens], [0.3, 0.9, 9]);
  const begun = (await client.entries()).find((entry) => entry.type === "call_begun");
  assert.equal(begun?.native.user, "me");
});

/** A server of images on loopback, and a network in which loopback is what the public internet is otherwise. */
async function imageServer(t: TestContext, answer: RequestListener) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const names: string[] = [];
  const network: Network = {
    resolve: async (host) => {
      names.push(host);
      // As a name server that answers otherwise when it is asked again.
      return [names.filter((name) => name === host).length > 1 ? "127.0.0.2" : host === "private.example" ? "10.1.2.3" : "127.0.0.1"];
    },
    mayConnect: (address) => address === "127.0.0.1",
  };
  return { network, names, origin: `http://images.example:${port}`, port };
}

const png: RequestListener = (_, response) => response.writeHead(200, { "content-type": "image/png" }).end(Buffer.from(pixel, "base64"));

test("an image of a listed origin is fetched by the proxy, once, and the record holds what the engine saw", async (t) => {
  const { network, names, origin } = await imageServer(t, png);
  await using at = await proxyAt(() => ({ text: "ok" }), { network });
  const client = await at.open({ ...sandboxed, fetch_images: [origin] });
  const first = { role: "user", content: [{ type: "image_url", image_url: { url: `${origin}/x.png` } }] };
  await client.say([first]);
  await client.say([first, { role: "assistant", content: "ok" }, { role: "user", content: "and now?" }]);
  assert.equal(names.length, 1);
  assert.ok(at.engine.bodies.every((body) => body.includes(data) && !body.includes("images.example")));
  const { messages: recorded, calls } = await client.trajectory();
  const image = Object.values(recorded).flatMap(({ parts }) => parts.flatMap((part) => (part.type === "image" ? [imageName(part)] : [])));
  assert.deepEqual(image, [`media/${hash("sha256", Buffer.from(pixel, "base64"))}`]);
  assert.equal(calls[1]?.input[0], calls[0]?.input[0]);
});

const fetches: [string, RequestListener, (at: { origin: string; port: number }) => { url: string; origins?: string[] }, RegExp][] = [
  ["another origin", png, ({ port }) => ({ url: `http://other.example:${port}/x.png` }), /is not in fetch_images/],
  [
    "a private address",
    png,
    ({ port }) => ({ url: `http://private.example:${port}/x.png`, origins: ["http://private.example:*"] }),
    /public internet/,
  ],
  ["a password", png, ({ origin }) => ({ url: origin.replace("//", "//a:b@") }), /password/],
  [
    "a redirect to another origin",
    redirect("http://169.254.169.254/"),
    ({ origin }) => ({ url: origin }),
    /169.254.169.254 is not in fetch_images/,
  ],
  [
    "a redirect to itself, of which the name leads elsewhere by then",
    redirect("/again"),
    ({ origin }) => ({ url: origin }),
    /public internet/,
  ],
  ["a redirect to a file", redirect("file:///etc/passwd"), ({ origin }) => ({ url: origin }), /no http/],
  [
    "what is no image",
    (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("x"),
    ({ origin }) => ({ url: origin }),
    /no image/,
  ],
  ["an image that never ends", endless, ({ origin }) => ({ url: origin }), /more than 20971520 bytes/],
  ["an error", (_, response) => response.writeHead(404).end(), ({ origin }) => ({ url: origin }), /answers 404/],
];

function redirect(to: string): RequestListener {
  return (_, response) => response.writeHead(302, { location: to }).end();
}
function endless(...[, response]: Parameters<RequestListener>): void {
  response.writeHead(200, { "content-type": "image/png" });
  const more = (): void => void (response.destroyed || response.write(Buffer.alloc(1 << 20), more));
  more();
}

for (const [name, answer, ask, why] of fetches)
  test(`the proxy does not hand on ${name}`, async (t) => {
    const server = await imageServer(t, answer);
    await using at = await proxyAt(() => ({ text: "ok" }), { network: server.network });
    const { url, origins = [server.origin] } = ask(server);
    const client = await at.open({ ...sandboxed, fetch_images: origins });
    const { path, body } = chat([{ type: "image_url", image_url: { url } }]);
    const response = await client.post(path, body);
    assert.equal(response.status, 400);
    assert.match(((await response.json()) as { error: { message: string } }).error.message, why);
    assert.deepEqual(at.engine.requests, []);
  });

test("an address that stands in a request a hundred times makes no conversation of a hundred large images", async (t) => {
  const large = Buffer.alloc(1024 * 1024);
  const { network, origin } = await imageServer(t, (_, response) => response.writeHead(200, { "content-type": "image/png" }).end(large));
  await using at = await proxyAt(() => ({ text: "ok" }), { network });
  const client = await at.open({ ...sandboxed, fetch_images: [origin] });
  const image = { type: "image_url", image_url: { url: `${origin}/x.png` } };
  const { path, body } = chat(Array.from({ length: 100 }, () => image));
  const response = await client.post(path, body);
  assert.equal(response.status, 400);
  assert.match(await response.text(), /no more than 67108864 characters of fetched images/);
  assert.deepEqual(at.engine.requests, []);
});
