/** What one sandboxed session may take of the proxy, and what it is told when it takes more. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import { dialects } from "../../../proxy/dialects/registry.ts";
import type { ProxyOptions } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { bodiesOf, harnessShapes } from "../../fakes/load/harness-shapes.ts";
import { until } from "../../fakes/machine/until.ts";
import { type Client, type ProxyAt, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];
const mebibyte = 1024 * 1024;

/** A sandboxed session and its door. */
async function sandbox(
  at: ProxyAt,
  spec: Partial<SessionSpec> = {},
): Promise<AsyncDisposable & { client: Client; port: number; connect(): Promise<Socket> }> {
  const client = await at.open({ sandboxed: true, ...spec });
  const door: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    at.proxy.attach(at.proxy.session(client.sessionId), socket);
  });
  door.listen(0, "127.0.0.1");
  await once(door, "listening");
  const { port } = door.address() as AddressInfo;
  const sockets: Socket[] = [];
  return {
    client,
    port,
    connect: async () => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      sockets.push(socket);
      await once(socket, "connect");
      return socket;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => door.close(resolve));
    },
  };
}

const post = (body: string, path = "/v1/chat/completions"): string =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const chat = (content: string): string => JSON.stringify({ model: "m", messages: [{ role: "user", content }] });

/** What it hears until it is closed, or has heard enough. */
async function heard(socket: Socket, isEnough: (text: string) => boolean = () => false): Promise<string> {
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  await until(() => socket.destroyed || socket.readableEnded || isEnough(text));
  return text;
}

async function start(options: Partial<ProxyOptions> = {}, before?: Promise<unknown>): Promise<ProxyAt> {
  return await proxyAt(() => ({ text: "ok", ...(before && { before }) }), options);
}

test("of a sandbox's connections those beyond its bound are closed, and one that ends makes room for another", async () => {
  await using at = await start({ bounds: { connections: 4 } });
  await using inside = await sandbox(at);
  const open = await Promise.all(Array.from({ length: 4 }, () => inside.connect()));
  assert.equal(await heard(await inside.connect()), "");
  open[0]?.end();
  open[0]?.destroy();
  const isAnswered = async (): Promise<boolean> => {
    const socket = await inside.connect();
    socket.write(post(chat("hi")));
    return (await heard(socket, (text) => text.includes("200 OK"))).includes("200 OK");
  };
  await until(isAnswered);
});

test("connections without a door count as their sandboxed session's once a request names it by its key", async () => {
  await using at = await start({ bounds: { connections: 2 } });
  const client = await at.open({ sandboxed: true });
  const { hostname, port } = new URL(at.proxy.url);
  const sockets = Array.from({ length: 3 }, () => connect(Number(port), hostname).on("error", () => undefined));
  const ask = (socket: Socket): Promise<string> => {
    socket.write(`GET /s/${client.key}/v1/models HTTP/1.1\r\nhost: x\r\n\r\n`);
    return heard(socket, (text) => text.includes('"data"'));
  };
  try {
    const [first, second, third] = sockets as [Socket, Socket, Socket];
    for (const socket of [first, second]) assert.match(await ask(socket), /^HTTP\/1.1 200 /);
    assert.match(await ask(first), /^HTTP\/1.1 200 /, "a connection counts once");
    assert.equal(await ask(third), "", "one too many is closed without an answer");
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test("calls beyond those that may run at once wait their turn, and the calls of other sessions do not", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await start({ bounds: { calls_at_once: 2 } }, hold.promise);
  const [busy, sibling] = [await at.open({ sandboxed: true }), await at.open({ sandboxed: true })];
  const calls = ["a", "b", "c", "d"].map((content) => busy.say([{ role: "user", content }]));
  await until(() => at.engine.requests.length === 2);
  const other = sibling.say(hi);
  await until(() => at.engine.requests.length === 3);
  assert.equal(at.proxy.session(busy.sessionId).running.inFlight().length, 2);
  hold.resolve();
  assert.deepEqual(
    (await Promise.all([...calls, other])).map(({ content }) => content),
    ["ok", "ok", "ok", "ok", "ok"],
  );
});

test("a session that brings too much that is new is told when to come back, in each dialect's form, and goes on with little", async () => {
  await using at = await start({ bounds: { new_bytes: 101_000, new_bytes_per_second: 1_000 } });
  const routes = [
    ["/v1/chat/completions", "messages", "rate_limit_error"],
    ["/v1/responses", "input", "rate_limit_error"],
    ["/v1/messages", "messages", "rate_limit_error"],
    ["/v1beta/models/m:generateContent", "contents", "RESOURCE_EXHAUSTED"],
  ] as const;
  for (const [path, field, type] of routes) {
    const client = await at.open({ sandboxed: true });
    const list = (content: string): unknown[] => [
      field === "contents" ? { role: "user", parts: [{ text: content }] } : { role: "user", content },
    ];
    const body = (content: string) => ({ model: "m", max_tokens: 9, [field]: list(content) });
    for (const letter of ["w", "x"]) assert.equal((await client.post(path, body(letter.repeat(90_000)))).status, 200, path);
    const refused = await client.post(path, body("y".repeat(90_000)));
    assert.equal(refused.status, 429, path);
    assert.ok(Number(refused.headers.get("retry-after")) > 60, path);
    assert.match(await refused.text(), new RegExp(type));
    assert.equal((await client.post(path, body("little"))).status, 200, path);
    await client.settled();
    const codes = (await client.entries()).flatMap((entry) => (entry.type === "refused" ? [entry.error.code] : []));
    assert.deepEqual(codes, ["too_many_requests"]);
  }
  const own = await at.open();
  for (const letter of ["x", "y", "z"]) assert.equal((await own.say([{ role: "user", content: letter.repeat(100_000) }])).content, "ok");
  assert.deepEqual(at.unseen, []);
});

test("a request that brings more that is new than its session ever may is a 413 that names the bound, in bytes or in values", async () => {
  await using at = await start({ bounds: { new_bytes: mebibyte } });
  const client = await at.open({ sandboxed: true });
  assert.equal((await client.say([{ role: "user", content: "x".repeat(100_000) }])).content, "ok");
  const bodies = [
    { messages: [{ role: "user", content: "y".repeat(2 * mebibyte) }] },
    { messages: Array.from({ length: 2_000 }, () => ({ role: "user", content: "" })) },
  ];
  for (const body of bodies) {
    const refused = await client.chat(body);
    assert.equal(refused.status, 413);
    assert.match(await refused.text(), /its bound new_bytes is 1048576: send less/);
  }
  await client.settled();
  const seen = (await client.entries()).flatMap((entry) => (entry.type === "refused" ? [entry.body?.sha256] : []));
  assert.deepEqual(seen, [null, null], "what was too much is not hashed");
  assert.equal(at.engine.requests.length, 1);
});

test("a body whose length alone says that it is too much is refused before it comes, and one without a length when it does", async () => {
  await using at = await start({ bounds: { new_bytes: 200_000, new_bytes_per_second: 1 } });
  await using inside = await sandbox(at);
  const head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n";
  const declared = await inside.connect();
  declared.write(`${head}content-length: 300000\r\n\r\n{`);
  assert.match(await heard(declared, (text) => text.includes("\r\n\r\n")), /^HTTP\/1.1 413/);
  const chunked = await inside.connect();
  chunked.write(`${head}transfer-encoding: chunked\r\n\r\n40000\r\n${" ".repeat(200_100)}`);
  assert.match(await heard(chunked, (text) => text.includes("\r\n\r\n")), /^HTTP\/1.1 413/);
  // Its pace is spent with the second of these: a third is not even waited for.
  for (const letter of ["a", "b"])
    assert.equal((await inside.client.say([{ role: "user", content: letter.repeat(180_000) }])).content, "ok");
  const third = await inside.connect();
  third.write(`${head}content-length: 350000\r\n\r\n{`);
  assert.match(await heard(third, (text) => text.includes("\r\n\r\n")), /^HTTP\/1.1 429/);
});

test("a usual harness never waits for its pace, with a result of a megabyte in it and sub-agents beside it", async () => {
  // What is owed is never paid back: whatever goes beyond what may come at once is a 429.
  await using at = await start({ bounds: { new_bytes_per_second: 1 } });
  for (const [name, shape] of Object.entries(harnessShapes)) {
    const client = await at.open({ sandboxed: true });
    const play = async (agent: string, turns: number, results = {}): Promise<void> => {
      for (const body of bodiesOf(shape, { agent, turns, results })) {
        const response = await client.post(shape.path, body);
        const text = await response.text();
        // The engine's context is smaller than a megabyte, and that is its word and not the gate's.
        assert.ok(response.status === 200 || /maximum|context length/.test(text), `${name}, ${agent}: ${response.status} ${text}`);
      }
    };
    await Promise.all([play("main", 12, { 9: 1_000_000 }), ...["a", "b", "c", "d"].map((agent) => play(agent, 5))]);
  }
  assert.deepEqual(at.unseen, []);
});

test("requests are answered at their pace and in order, however many come at once", async () => {
  await using at = await start({ bounds: { requests_per_second: 20, calls_at_once: 100, connections: 100 } });
  const client = await at.open({ sandboxed: true });
  const from = performance.now();
  // Eighty of them at once, and twenty a second from then on.
  await Promise.all(Array.from({ length: 100 }, (_, index) => client.say([{ role: "user", content: String(index) }])));
  assert.ok(performance.now() - from >= 900, `${performance.now() - from} ms`);
});

test("requests that are sent before the one in front is answered wait for it; a connection with many of them is closed", async () => {
  await using at = await start();
  await using inside = await sandbox(at);
  const some = await inside.connect();
  some.write(post(chat("a")) + post(chat("b")) + post(chat("c")));
  assert.equal((await heard(some, (text) => text.split("200 OK").length === 4)).split("200 OK").length, 4);
  const many = await inside.connect();
  many.write(post(chat("x")).repeat(2_000));
  await heard(many);
  await inside.client.settled();
  assert.ok(at.engine.requests.length <= 4, `${at.engine.requests.length} calls`);
  assert.deepEqual(at.unseen, []);
});

test("bodies that are never finished take the session's own room, and a sibling is answered", async () => {
  await using at = await start({ bounds: { bytes_in_flight: 8 * mebibyte, body_bytes: 4 * mebibyte } });
  await using inside = await sandbox(at);
  const [first, second, third] = await Promise.all([inside.connect(), inside.connect(), inside.connect()]);
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${4 * mebibyte}\r\n\r\n`;
  for (const socket of [first, second]) socket.write(head + " ".repeat(3 * mebibyte));
  // What is not read of them comes to no end, so what was read is known by a sibling's whole body of the same size.
  const sibling = await at.open({ sandboxed: true });
  assert.equal((await sibling.chat({ messages: hi, user: " ".repeat(3 * mebibyte) })).status, 200);
  third.write(head + " ".repeat(4 * mebibyte));
  assert.equal((await sibling.say(hi)).content, "ok");
  assert.equal(third.bytesRead, 0);
  first.destroy();
  assert.match(await heard(third, (text) => text.includes("\r\n\r\n")), /^HTTP\/1.1 400/);
});

test("a log beyond its budget ends the session: what it is, is said, and nothing grows any more", async () => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-bounds-"));
  await using scope = new AsyncDisposableStack();
  scope.defer(() => rm(folder, { recursive: true, force: true }));
  const at = scope.use(await start({ store: new DiskStore(folder) }));
  const client = await at.open({ sandboxed: true, budgets: { max_log_bytes: 50_000 } });
  const session = at.proxy.session(client.sessionId);
  for (let index = 0; session.logBytes < 50_000; index++) await client.say([{ role: "user", content: `${index}`.repeat(3_000) }]);
  const response = await client.chat({ messages: hi });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /out of budget: this session has spent its budget max_log_bytes: \d+ of 50000/);
  assert.equal(session.state.stopReason, "budget_spent");
  for (let index = 0; index < 300; index++) await client.chat({ messages: hi });
  await client.settled();
  assert.ok(session.logBytes < 50_000 + 70_000, `${session.logBytes}`);
});

test("a sandboxed session has a budget of calls and of its log, and keeps those that it is given", async () => {
  await using at = await start();
  const budgets = async (spec: Partial<SessionSpec>) => at.proxy.session((await at.open(spec)).sessionId).spec.budgets;
  assert.deepEqual(await budgets({}), {});
  assert.deepEqual(await budgets({ sandboxed: true, budgets: { max_turns: 3 } }), {
    max_turns: 3,
    max_log_bytes: 256 * mebibyte,
    max_concurrent_calls: 64,
  });
});

test("a body of more values than it may have is a 413, whether it is large or grows", async () => {
  await using at = await start({ bounds: { body_values: 1_000 } });
  const client = await at.open({ sandboxed: true });
  const many = `{"model":"m","messages":[{"role":"user","content":"x"}],"stop":[${"0,".repeat(2_000)}0]}`;
  const large = `{"model":"m","messages":[{"role":"user","content":"${"x".repeat(600_000)}"}],"stop":[${"0,".repeat(2_000)}0]}`;
  for (const body of [many, large]) {
    const response = await client.post("/v1/chat/completions", body);
    assert.deepEqual([response.status, /its bound body_values is 1000/.test(await response.text())], [413, true]);
  }
  const messages: unknown[] = [{ role: "user", content: "x".repeat(20_000) }];
  let status = 200;
  for (let turn = 0; status === 200 && turn < 30; turn++) {
    for (let index = 0; index < 20; index++) messages.push({ role: "user", content: `${turn} ${index}` });
    status = (await client.chat({ messages })).status;
  }
  assert.equal(status, 413);
});

test("a large body is the same call as a small one, its numbers as they were written, and the next one goes on from it", async () => {
  await using at = await start();
  const text = `${"😀".repeat(70_000)}\u2028\\"`;
  for (const more of ["", ',"tools":[{"type":"function","function":{"name":"f","parameters":{"minimum":0.0}}}]']) {
    const client = await at.open({ sandboxed: true });
    const messages = [{ role: "user", content: text }];
    const body = (list: unknown[]): string => `{"model":"m","messages":${JSON.stringify(list)}${more}}`;
    assert.equal((await client.post("/v1/chat/completions", body(messages))).status, 200);
    const next = [...messages, { role: "assistant", content: "ok" }, { role: "user", content: "more" }];
    assert.equal((await client.post("/v1/chat/completions", body(next))).status, 200);
    const { calls } = await client.trajectory();
    assert.equal(calls[1]?.parent_call_id, calls[0]?.call_id);
    const asked = at.engine.bodies.at(-1) ?? "";
    assert.equal(JSON.parse(asked).messages[0].content, text);
    assert.equal(/"minimum":0\.0/.test(asked), more !== "");
  }
  assert.deepEqual(at.unseen, []);
});

test("a large body that is no JSON is refused as a small one is, by every dialect", async () => {
  await using at = await start();
  for (const dialect of dialects) {
    const client = await at.open({ sandboxed: true });
    const path =
      dialect.routes
        .find((route) => route.kind === "generate")
        ?.path.replace(/:[A-Za-z]+\{[^}]*\}/g, "m:generateContent")
        .replace(/:model\b/, "m") ?? "";
    for (const body of ["[".repeat(500_000), `{"a":"${"x".repeat(500_000)}`, Buffer.alloc(500_000, 0xff).toString("latin1")])
      assert.ok([400, 413].includes((await client.post(path, body)).status), `${path} ${body.slice(0, 20)}`);
  }
  assert.deepEqual(at.unseen, []);
});
