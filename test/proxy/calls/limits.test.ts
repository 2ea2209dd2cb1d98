/** What no harness sends: bodies that are none, requests that never end, and connections that only stand there. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { dialects } from "../../../proxy/dialects/registry.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];

/** The generating routes of every dialect, and the field that holds the conversation there. */
const routes = dialects.flatMap((dialect) => {
  const path = dialect.routes.find((route) => route.kind === "generate")?.path ?? assert.fail(dialect.name);
  return [{ dialect, path: path.replace(/:[A-Za-z]+\{[^}]*\}/g, "scripted:generateContent").replace(/:model\b/, "scripted") }];
});

const nested = (open: string, close: string): string => open.repeat(1_000_000) + close.repeat(1_000_000);

test("a body that is no request is a 400 in the dialect's own shape, whatever it is, and the proxy goes on", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const bodies = [
    "[]",
    "5",
    "null",
    '"text"',
    "{",
    "",
    "[1,2]",
    '{"messages":5,"input":5,"contents":5,"prompt":{},"model":"m"}',
    nested("[", "]"),
    nested('{"a":', "}"),
  ];
  for (const { dialect, path } of routes)
    for (const body of bodies) {
      const response = await client.post(path, body);
      const text = await response.text();
      const shown = `${dialect.name} ${path} ${body.slice(0, 40)}: ${response.status} ${text.slice(0, 200)}`;
      assert.equal(response.status, 400, shown);
      assert.ok(text.length < 2_000, shown);
      const said = dialect.error(
        Object.assign(new Error("x"), { code: "request_invalid", status: 400, param: null, owner: "user" }) as never,
      );
      assert.deepEqual(Object.keys(JSON.parse(text)), Object.keys(said.body as object), shown);
    }
  assert.equal((await client.say(hi)).content, "ok");
  assert.deepEqual(at.unseen, []);
  assert.equal((await client.trajectory()).calls.length, 1);
});

test("arguments that a model nested beyond all measure go out and come back in every dialect that says calls", async () => {
  const deep = (levels: number, space = ""): string => `{"a":${space}${"[".repeat(levels)}${"]".repeat(levels)}}`;
  for (const levels of [300, 3_000]) {
    await using at = await proxyAt((_, index) =>
      index % 2 === 0 ? { text: "So: ", tool_calls: [{ name: "bash", arguments: deep(levels) }] } : { text: "ok" },
    );
    const post = async (client: Client, path: string, body: Record<string, unknown>): Promise<Record<string, unknown>> => {
      const response = await client.post(path, { model: "m", ...body });
      const said = await response.text();
      assert.equal(response.status, 200, `${levels} ${path}: ${said.slice(0, 300)}`);
      return JSON.parse(said);
    };
    const parameters = { type: "object" };
    const goOn: Record<string, (client: Client) => Promise<unknown>> = {
      "openai-chat": async (client) => {
        const turn = await client.say(hi, { tools: [{ type: "function", function: { name: "bash", parameters } }] });
        // As a harness writes it that has parsed it.
        const again = JSON.stringify(turn).replace(JSON.stringify(deep(levels)), JSON.stringify(deep(levels, " ")));
        return await client.say([...hi, JSON.parse(again), { role: "tool", content: "no" }]);
      },
      "openai-responses": async (client) => {
        const { output } = await post(client, "/v1/responses", { input: hi, tools: [{ type: "function", name: "bash", parameters }] });
        return await post(client, "/v1/responses", { input: [...hi, ...(output as unknown[]), ...hi] });
      },
      "anthropic-messages": async (client) => {
        const tools = [{ name: "bash", input_schema: parameters }];
        const { content } = await post(client, "/v1/messages", { max_tokens: 9, messages: hi, tools });
        return await post(client, "/v1/messages", { max_tokens: 9, messages: [...hi, { role: "assistant", content }, ...hi] });
      },
      "google-generate-content": async (client) => {
        const asked = { role: "user", parts: [{ text: "hi" }] };
        const tools = [{ functionDeclarations: [{ name: "bash", parametersJsonSchema: parameters }] }];
        const { candidates } = await post(client, "/v1beta/models/m:generateContent", { contents: [asked], tools });
        const { content } = (candidates as { content: unknown }[])[0] ?? {};
        return await post(client, "/v1beta/models/m:generateContent", { contents: [asked, content, asked] });
      },
    };
    for (const play of Object.values(goOn)) {
      const client = await at.open({ purpose: "train" });
      await play(client);
      const { calls } = await client.trajectory();
      assert.deepEqual(
        calls.map((call) => call.outcome),
        ["delivered", "delivered"],
      );
      assert.equal(calls[1]?.parent_call_id, calls[0]?.call_id);
    }
    assert.deepEqual(
      Object.keys(goOn),
      dialects.map(({ name }) => name).filter((name) => name !== "openai-completions"),
    );
    assert.deepEqual(at.unseen, []);
  }
});

test("a refused body is on the record by its length and hash, and no word of it, wherever it has a stranger's text", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const long = "x".repeat(1_000_000);
  const bodies = [
    { messages: [{ role: long, content: "" }] },
    { messages: [{ role: "user", content: [{ type: long }] }], input: [{ type: long }], contents: [{ role: long }] },
    { messages: hi, input: hi, contents: long, tools: [{ type: long, name: long, [long]: 1 }], tool_choice: long, prompt: [long] },
    { messages: hi, input: [{ type: "item_reference", id: long }], previous_response_id: long, conversation: long, stop: [[long]] },
    { [long]: 1 },
    `{"model":${long}`,
  ].map((body) => (typeof body === "string" ? body : JSON.stringify({ model: "m", ...body })));
  for (const { path } of routes)
    for (const body of bodies) {
      const response = await client.post(path, body);
      const text = await response.text();
      if (response.status === 200) continue;
      assert.ok(text.length < 20_000, `${path} ${body.slice(0, 60)}: ${text.length} characters`);
      await client.settled();
      const last = (await client.entries()).at(-1);
      assert.ok(last?.type === "refused", `${path} ${body.slice(0, 60)}: ${last?.type}`);
      assert.deepEqual(last.body, { bytes: body.length, sha256: hash("sha256", body) });
      assert.ok(JSON.stringify(last).length < 10_000, JSON.stringify(last).slice(0, 300));
    }
});

test("a body beyond 64 MiB is a 413, declared or not", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const declared = await raw(at.proxy.url, `${head(client)}content-length: 99999999999\r\n\r\n`);
  assert.match(await declared.until("\r\n\r\n"), /^HTTP\/1.1 413/);
  declared.socket.destroy();
  const chunked = await raw(at.proxy.url, `${head(client)}transfer-encoding: chunked\r\n\r\n`);
  const mebibyte = Buffer.concat([Buffer.from("100000\r\n"), Buffer.alloc(1024 * 1024, 32), Buffer.from("\r\n")]);
  for (let sent = 0; sent < 66 && !chunked.socket.destroyed && chunked.heard === ""; sent++)
    if (!chunked.socket.write(mebibyte)) await Promise.race([chunked.drained(), chunked.until("413")]);
  assert.match(await chunked.until("\r\n\r\n"), /^HTTP\/1.1 413/);
  chunked.socket.destroy();
  assert.equal((await client.say(hi)).content, "ok");
});

test("headers beyond what Node takes are a 431", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const big = await raw(at.proxy.url, `${head(client)}x-big: ${"a".repeat(64 * 1024)}\r\n\r\n`);
  assert.match(await big.until("\r\n\r\n"), /^HTTP\/1.1 431/);
  big.socket.destroy();
});

test("two hundred connections that say nothing, or half of something, do not hold up a call", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const starts = ["", "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n", `${head(client)}content-length: 1000\r\n\r\n{"mod`];
  const idle = await Promise.all(Array.from({ length: 200 }, (_, index) => raw(at.proxy.url, starts[index % starts.length] as string)));
  assert.equal((await client.say(hi)).content, "ok");
  for (const { socket } of idle) socket.destroy();
  // A client that left in the middle of its body is no call.
  assert.equal((await client.say(hi)).content, "ok");
  assert.equal((await client.trajectory()).calls.length, 2);
  assert.deepEqual(at.unseen, []);
});

test("clients that stop in their headers or in their body are cut off in bounded time", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }), { clientTimeouts: { headersMs: 300, requestMs: 600 } });
  const client = await at.open();
  const slow = await raw(at.proxy.url, "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n");
  const half = await raw(at.proxy.url, `${head(client)}content-length: 1000\r\n\r\n{"mod`);
  const silent = await raw(at.proxy.url, "");
  const drip = setInterval(() => slow.socket.writable && slow.socket.write("x-a: b\r\n"), 50);
  await Promise.all([slow, half, silent].map((one) => one.closed()));
  clearInterval(drip);
  assert.match(slow.heard, /^HTTP\/1.1 408/);
  assert.equal((await client.say(hi)).content, "ok");
});

const head = (client: Client): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${client.key}\r\ncontent-type: application/json\r\n`;

/** A connection below HTTP: what it sends is the test's, what it hears is kept. */
class Raw {
  readonly socket: Socket;
  heard = "";
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      this.heard += chunk.toString("latin1");
      this.#wake();
    });
    socket.on("close", () => this.#wake());
    socket.on("drain", () => this.#wake());
  }

  async until(text: string): Promise<string> {
    while (!this.heard.includes(text) && !this.socket.destroyed) await this.#next();
    return this.heard;
  }

  async drained(): Promise<void> {
    while (this.socket.writableNeedDrain && !this.socket.destroyed) await this.#next();
  }

  async closed(): Promise<void> {
    while (!this.socket.destroyed) await this.#next();
  }

  #next(): Promise<void> {
    const before = this.#wake;
    return new Promise((resolve) => {
      this.#wake = () => {
        before();
        resolve();
      };
    });
  }
}

async function raw(url: string, start: string): Promise<Raw> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const conversation = new Raw(socket);
  await once(socket, "connect");
  if (start !== "") socket.write(start);
  return conversation;
}
