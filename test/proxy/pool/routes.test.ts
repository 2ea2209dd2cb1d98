/** What is no generation: answered from what is known, or refused at once, and never recorded as a call. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];

test("what is no generation is a 404 in the caller's own shape and no call", async () => {
  await using at = await proxyAt(() => ({ text: "never" }));
  const client = await at.open();
  const openai = [
    "/v1/embeddings",
    "/v1/completions/tokens",
    "/tokenize",
    "/v1/tokenize",
    "/v1/moderations",
    "/v1/batches",
    "/v1/files",
    "/v1/images/generations",
    "/v1/audio/speech",
    "/v1/rerank",
  ];
  for (const path of [...openai, "/v1/messages/batches", "/v1/complete"]) {
    const response = await client.post(path, { model: "m", input: "x", messages: hi });
    assert.equal(response.status, 404, path);
    assert.equal(response.headers.get("x-should-retry"), "false");
    const body = (await response.json()) as { type?: string; error: { code?: string; type: string; message: string } };
    assert.ok(body.error.message.includes(path), body.error.message);
    if (path === "/v1/messages/batches") assert.deepEqual([body.type, body.error.type], ["error", "not_found_error"]);
    else assert.equal(body.error.code, "not_found");
  }
  // Where no dialect owns the path, the header that carries the key says who is asking.
  const asked = await fetch(`${at.proxy.url}/s/${client.key}/v1/files`, { headers: { "x-api-key": "k" } });
  assert.equal(((await asked.json()) as { type: string }).type, "error");
  assert.ok(!JSON.stringify(at.unseen).includes("error"));
  assert.deepEqual(
    (await client.entries()).map((entry) => entry.type),
    ["opened"],
  );
});

test("a base URL with a /v1 too few or too many is named as what is wrong", async () => {
  await using at = await proxyAt(() => ({ text: "never" }));
  const client = await at.open();
  const told = async (path: string): Promise<string> => await (await client.post(path, { model: "m", messages: hi })).text();
  assert.match(await told("/chat/completions"), /base URL lacks \/v1/);
  assert.match(await told("/responses"), /base URL lacks \/v1/);
  assert.match(await told("/v1/v1/messages"), /a \/v1 too many/);
  assert.doesNotMatch(await told("/v1/embeddings"), /base URL/);
});

test("a model is found by its name, also one with slashes in it, by both vendors' SDKs", async () => {
  await using at = await proxyAt(() => ({ text: "never" }));
  const client = await at.open();
  const { key } = client;
  const openai = new OpenAI({ baseURL: `${at.proxy.url}/v1`, apiKey: key });
  const anthropic = new Anthropic({ baseURL: at.proxy.url, apiKey: key });
  assert.equal((await openai.models.retrieve("scripted")).id, "scripted");
  await assert.rejects(openai.models.retrieve("org/none"), { status: 404, code: "model_not_found" });
  // The vendor's header comes as Bearer here, for one path serves both.
  const bearer = new Anthropic({ baseURL: at.proxy.url, authToken: key, apiKey: null });
  assert.equal((await bearer.models.retrieve("scripted")).display_name, "scripted");
  assert.equal(
    typeof (await anthropic.messages.countTokens({ model: "m", messages: [{ role: "user", content: "hi" }] })).input_tokens,
    "number",
  );
  const { input_tokens } = await anthropic.messages.countTokens({
    model: "m",
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content: "Hello." },
    ],
  });
  assert.equal(typeof input_tokens, "number", "counting goes on whichever role spoke last");
  assert.deepEqual([at.engine.requests.length, (await client.entries()).length], [0, 1], "counting is no call");
});

test("HEAD and OPTIONS are answered, and a look whether the server is there needs no key", async () => {
  await using at = await proxyAt(() => ({ text: "never" }));
  const client = await at.open();
  const ask = (method: string, path: string) => fetch(at.proxy.url + path, { method, headers: { authorization: `Bearer ${client.key}` } });
  const hello = await fetch(`${at.proxy.url}/api/hello`, { method: "HEAD" });
  assert.deepEqual([hello.status, hello.headers.get("content-length")], [200, "0"]);
  assert.equal((await ask("HEAD", "/v1/models")).status, 200);
  assert.equal((await ask("HEAD", "/v1/nothing")).status, 404);
  const options = await ask("OPTIONS", "/v1/chat/completions");
  assert.deepEqual([options.status, options.headers.get("allow")], [204, "OPTIONS, POST"]);
  assert.equal((await ask("OPTIONS", `/s/${client.key}/v1/models`)).headers.get("allow"), "GET, HEAD, OPTIONS");
  assert.equal((await ask("PUT", "/v1/chat/completions")).status, 404);
});

const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`;

async function firstLineOf(socket: Socket, request: string): Promise<string> {
  socket.write(request);
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString().split("\r\n")[0] ?? "";
}

test("a WebSocket is refused at once with 426, and the same connection goes on with HTTP", { timeout: 10_000 }, async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const { key } = await at.open();
  const url = new URL(at.proxy.url);
  const socket = connect(Number(url.port), url.hostname);
  for (const path of ["/v1/responses", `/s/${key}/v1/responses`])
    assert.equal(await firstLineOf(socket, upgrade(path)), "HTTP/1.1 426 Upgrade Required");
  assert.equal(await firstLineOf(socket, upgrade("/v1/realtime")), "HTTP/1.1 404 Not Found");
  assert.equal(await firstLineOf(socket, `GET /s/${key}/v1/models HTTP/1.1\r\nhost: x\r\n\r\n`), "HTTP/1.1 200 OK");
  socket.destroy();
});

test("a WebSocket is refused at once through a sandbox's door too", { timeout: 10_000 }, async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const { sessionId } = await at.open();
  const door = createServer((socket) => at.proxy.attach(at.proxy.session(sessionId), socket));
  await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve));
  const socket = connect((door.address() as { port: number }).port, "127.0.0.1");
  assert.equal(await firstLineOf(socket, upgrade("/v1/responses")), "HTTP/1.1 426 Upgrade Required");
  assert.equal(await firstLineOf(socket, "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"), "HTTP/1.1 200 OK");
  socket.destroy();
  door.close();
});

test("a proxy that listens everywhere names an address that can be called", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }), { host: "0.0.0.0" });
  assert.match(at.proxy.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.equal((await (await at.open()).say([{ role: "user", content: "hi" }])).content, "ok");
});
