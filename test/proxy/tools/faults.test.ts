/** Services that die, hang, answer too much or something else: the model reads an error, and nothing is done twice. */
import assert from "node:assert/strict";
import { request, type ServerResponse } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { ToolServer } from "../../../base/schema/environment/tool-servers.ts";
import { openTools } from "../../../proxy/index.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { until } from "../../fakes/machine/until.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { placeOf, type RawMessage, rawService, type Seen, sdkService, shopServer, usualAnswer } from "../../fakes/tools/tool-services.ts";
import { callText, toolsAt } from "../../fakes/tools/tools-at.ts";

const shop = { name: "shop", service: "shop", port: 8000 };
const oneTool = '[{"name":"write"}]';

type Handle = (message: RawMessage, outgoing: ServerResponse) => string | null | Promise<string | null>;

const breakOff: Handle = (_, outgoing) => {
  outgoing.destroy();
  return null;
};
const refuse: Handle = (_, outgoing) => {
  outgoing.writeHead(500).end("no disk");
  return null;
};

/** A service whose calls are handled so, and that counts them. */
async function faultyTools(handle: Handle, server: Record<string, unknown> = {}, ping: (message: RawMessage) => boolean = () => true) {
  let calls = 0;
  const service = rawService((message, outgoing) => {
    if (message.method === "tools/call") calls++;
    if (message.method === "tools/call") return handle(message, outgoing);
    if (message.method === "ping" && !ping(message)) {
      outgoing.destroy();
      return null;
    }
    return usualAnswer(message, oneTool);
  });
  const tools = await toolsAt({ servers: [{ ...shop, ...server }], place: placeOf({ shop: service }) });
  return { tools, calls: () => calls, [Symbol.asyncDispose]: () => tools[Symbol.asyncDispose]() };
}

const faults: [what: string, failure: string, handle: Handle, server?: Record<string, unknown>][] = [
  ["breaks off before its answer", "died", breakOff],
  [
    "breaks off in its answer",
    "died",
    (_, outgoing) => {
      outgoing.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      outgoing.write('{"jsonrpc"', () => outgoing.destroy());
      return null;
    },
  ],
  ["does not answer", "hung", () => new Promise<string>(() => {}), { timeout_seconds: 0.2 }],
  ["answers too much", "too_large", ({ id }) => resultOf(id, "x".repeat(200_000)), { max_result_bytes: 100_000 }],
  [
    "answers without an end",
    "too_large",
    async (_, outgoing) => {
      outgoing.writeHead(200, { "content-type": "application/json" });
      while (!outgoing.destroyed) {
        outgoing.write(Buffer.alloc(64 * 1024, 0x20));
        await sleep(1);
      }
      return null;
    },
    { max_result_bytes: 100_000 },
  ],
  ["answers no JSON", "invalid", () => "<html>"],
  ["answers a result without content", "invalid", ({ id }) => `{"jsonrpc":"2.0","id":${id},"result":{"answer":42}}`],
  [
    "answers with content that nests too deeply",
    "invalid",
    ({ id }) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"deep","value":${"[".repeat(10_000)}${"]".repeat(10_000)}}]}}`,
  ],
  ["answers with an error of HTTP", "invalid", refuse],
  [
    "ends its events without an answer",
    "died",
    (_, outgoing) => {
      outgoing.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n");
      return null;
    },
  ],
];

function resultOf(id: number | undefined, text: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":${JSON.stringify(text)}}]}}`;
}

for (const [what, failure, handle, server] of faults)
  test(`a service that ${what} is an error to the model, once; the rollout counts while it answers a ping`, async () => {
    await using at = await faultyTools(handle, server);
    const { tools } = at;
    const { text } = await tools.post(callText("write", "{}"));
    const { result } = JSON.parse(text) as { result: { isError: boolean; content: { text: string }[] } };
    assert.equal(result.isError, true);
    assert.match(result.content[0]?.text ?? "", /^The tool write failed: /);
    assert.equal(at.calls(), 1);
    assert.equal(tools.relay.failure, null);
    const { tool_runs } = await tools.client.trajectory();
    assert.deepEqual(
      tool_runs?.map((run) => [run.outcome, run.failure]),
      [["failed", failure]],
    );
  });

test("a service that does not answer a ping after it failed makes the rollout measure nothing, and takes no more calls", async () => {
  await using at = await faultyTools(breakOff, {}, () => false);
  const { tools } = at;
  await tools.post(callText("write", "{}"));
  assert.ok(tools.relay.failed.aborted);
  assert.equal(tools.relay.failure?.code, "tool_service_failed");
  assert.match(tools.relay.failure?.message ?? "", /^the service shop of the tool server shop is down: the connection broke off/);
  const { text } = await tools.post(callText("write", "{}"));
  assert.match(text, /the tools are out of order/);
  assert.equal(at.calls(), 1);
});

test("a service that sends a thousand requests before its answer gets few replies at once", async () => {
  const open = Promise.withResolvers<void>();
  let replies = 0;
  const service = rawService(async (message, outgoing) => {
    if (message.method === "tools/call") {
      outgoing.writeHead(200, { "content-type": "text/event-stream" });
      const ping = (index: number) => `data: {"jsonrpc":"2.0","id":"p${index}","method":"ping"}\n\n`;
      outgoing.end(`${Array.from({ length: 1_000 }, (_, index) => ping(index)).join("")}data: ${resultOf(message.id, "written")}\n\n`);
      return null;
    }
    if (message.method !== undefined) return usualAnswer(message, oneTool);
    replies++;
    await open.promise;
    return null;
  });
  await using tools = await toolsAt({ servers: [shop], place: placeOf({ shop: service }) });
  assert.match((await tools.post(callText("write", "{}"))).text, /written/);
  open.resolve();
  // What waits for a connection is sent before this call.
  assert.match((await tools.post(callText("write", "{}"))).text, /written/);
  assert.ok(replies > 0 && replies < 100, `${replies} replies`);
});

test("an error of the protocol comes from the service as it is, and is no failure", async () => {
  await using at = await faultyTools(({ id }) => `{"jsonrpc":"2.0","id":${id},"error":{"code":-32602,"message":"no id","data":{"a":1.0}}}`);
  const { text } = await at.tools.post(callText("write", "{}", "q"));
  assert.equal(text, '{"jsonrpc":"2.0","id":"q","error":{"code":-32602,"message":"no id","data":{"a":1.0}}}');
  assert.equal((await at.tools.client.trajectory()).tool_runs?.[0]?.outcome, "error");
});

test("a rollout that ends breaks off what runs, and that is on record before the session is sealed", async () => {
  await using at = await faultyTools(() => new Promise<string>(() => {}));
  const { tools } = at;
  const asked = tools.post(callText("write", "{}"));
  await until(() => at.calls() === 1);
  await tools.relay.stop();
  assert.match((await asked).text, /the rollout ended/);
  assert.match((await tools.post(callText("write", "{}"))).text, /takes no more calls/);
  assert.equal((await tools.client.trajectory()).tool_runs?.[0]?.failure, "cut");
  tools.relay.goOn();
  void tools.post(callText("write", "{}")).catch(() => undefined);
  await until(() => at.calls() === 2);
});

test("a process that is killed between the two lines of a run leaves it unknown, and never as not run", async () => {
  await using at = await faultyTools(() => new Promise<string>(() => {}));
  void at.tools.post(callText("write", '{"row":1}')).catch(() => undefined);
  await until(() => at.calls() === 1);
  const entries = await at.tools.client.entries();
  const [run] = reconstruct(entries).tool_runs ?? [];
  assert.deepEqual([run?.outcome, run?.arguments, run?.result_sha256], ["unknown", '{"row":1}', null]);
  // The beginning is written before the service has seen the call.
  assert.equal(entries.at(-1)?.type, "tool_begun");
});

test("a command that speaks over its standard streams gives its tools too, and logs that it prints are passed over", async () => {
  const seen: Seen = [];
  const command = {
    shop: async (stream: import("node:stream").Duplex) => {
      stream.write("starting…\n{}\n");
      await shopServer(seen).connect(new StdioServerTransport(stream, stream));
    },
  };
  await using tools = await toolsAt({ servers: [{ name: "shop", service: "shop", command: ["serve"] }], place: placeOf({}, command) });
  const mcp = await tools.mcp();
  assert.equal((await mcp.listTools()).tools.length, 6);
  const long = await mcp.callTool({ name: "large", arguments: { bytes: 1_000_000 } });
  assert.equal((long.content as { text: string }[])[0]?.text.length, 1_000_000);
  const answers = await Promise.all([
    mcp.callTool({ name: "wait", arguments: { ms: 50 } }),
    mcp.callTool({ name: "find_order", arguments: { id: "W1" } }),
  ]);
  assert.deepEqual(
    answers.map(({ content }) => (content as { text: string }[])[0]?.text),
    ["waited", "order W1 is open"],
  );
});

test("a command's line that is too long fails the calls that wait, and a command that ends is down", async () => {
  let end = () => {};
  const command = {
    shop: (stream: import("node:stream").Duplex) => {
      end = () => stream.end();
      let pending = "";
      stream.on("data", (piece: Buffer) => {
        pending += piece;
        for (let at = pending.indexOf("\n"); at !== -1; at = pending.indexOf("\n")) {
          const message = JSON.parse(pending.slice(0, at)) as RawMessage;
          pending = pending.slice(at + 1);
          const answer = message.method === "tools/call" ? resultOf(message.id, "x".repeat(300_000)) : usualAnswer(message, oneTool);
          if (answer !== null) stream.write(`${answer}\n`);
        }
      });
    },
  };
  const server = { name: "shop", service: "shop", command: ["serve"], max_result_bytes: 100_000 };
  await using tools = await toolsAt({ servers: [server], place: placeOf({}, command) });
  assert.match((await tools.post(callText("write", "{}"))).text, /more than 100000 bytes/);
  assert.equal(tools.relay.failed.aborted, false);
  end();
  await until(async () => /its command ended/.test((await tools.post(callText("write", "{}"))).text));
  assert.equal(tools.relay.failure?.code, "tool_service_failed");
});

test("a command whose line is too long while a ping waits is not down", async () => {
  const command = {
    shop: (stream: import("node:stream").Duplex) => {
      stream.on("data", (piece: Buffer) => {
        for (const line of piece.toString().trim().split("\n")) {
          const message = JSON.parse(line) as RawMessage;
          // As the results of two calls at once: the second comes when the first has failed already.
          const isLong = message.method === "tools/call" || message.method === "ping";
          const answer = isLong ? resultOf(message.id, "x".repeat(300_000)) : usualAnswer(message, oneTool);
          if (answer !== null) stream.write(`${answer}\n`);
        }
      });
    },
  };
  const server = { name: "shop", service: "shop", command: ["serve"], max_result_bytes: 100_000 };
  await using tools = await toolsAt({ servers: [server], place: placeOf({}, command) });
  assert.match((await tools.post(callText("write", "{}"))).text, /more than 100000 bytes/);
  assert.equal(tools.relay.failure, null);
});

test("a server that starts late is waited for, and one that never does is named when the time is over", async () => {
  await using at = await proxyAt(() => ({ text: "yes" }));
  const { session } = await at.proxy.openSession({ sandboxed: true });
  const service = sdkService(() => shopServer([]));
  const started = Date.now();
  const late = placeOf({ shop: service });
  const connect: typeof late.connect = (name, port, signal) =>
    Date.now() - started < 300 ? Promise.reject(new Error("connection refused")) : late.connect(name, port, signal);
  await using relay = await openTools(session, [ToolServer.parse(shop)], { ...late, connect }, AbortSignal.timeout(60_000));
  assert.deepEqual(relay.servers, ["shop"]);
  const never = openTools(
    session,
    [ToolServer.parse(shop)],
    { ...late, connect: () => Promise.reject(new Error("refused")) },
    AbortSignal.timeout(200),
  );
  await assert.rejects(never, /the tool server shop in the service shop cannot be used: the connection broke off \(refused\)/);
});

test("tools that `allow` names and the server has not, and names that harnesses would cut, are the task's fault", async () => {
  await using at = await proxyAt(() => ({ text: "yes" }));
  const { session } = await at.proxy.openSession({ sandboxed: true });
  const open = (tools: string, more: Record<string, unknown> = {}) =>
    openTools(
      session,
      [ToolServer.parse({ ...shop, ...more })],
      placeOf({ shop: rawService((message) => usualAnswer(message, tools)) }),
      AbortSignal.timeout(60_000),
    );
  await assert.rejects(open(oneTool, { allow: ["read"] }), { code: "task_invalid", message: /has no tool read: allow names of write/ });
  await assert.rejects(open(`[{"name":"${"a".repeat(60)}"}]`), {
    code: "task_invalid",
    message: /is longer than 63: choose shorter names/,
  });
  await assert.rejects(open('[{"name":"a-b"},{"name":"a_b"}]'), { code: "task_invalid", message: /which harnesses call by one name/ });
  await assert.rejects(open("{}"), { code: "tool_service_failed" });
});

test("arguments of 100 MB are not read, and ten thousand calls at once run no faster than their session's pace", async () => {
  const seen: Seen = [];
  await using tools = await toolsAt({ servers: [shop], place: placeOf({ shop: sdkService(() => shopServer(seen)) }) });
  const huge = callText("find_order", JSON.stringify({ id: "x".repeat(100 * 1024 * 1024) }));
  const refused = await fetch(`${tools.url}/mcp/shop`, { method: "POST", body: huge }).then(
    ({ status }) => status,
    () => 413, // the connection is closed before all of it was sent
  );
  assert.equal(refused, 413);
  assert.equal(seen.length, 0);
  const body = callText("find_order", '{"id":"W1"}');
  const enough = new AbortController();
  // `fetch` goes on connecting after its abort; a request of node:http does not.
  const flood = Array.from({ length: 10_000 }, async () => {
    const sent = request(`${tools.url}/mcp/shop`, { method: "POST", agent: false, signal: enough.signal }, (answer) => answer.resume());
    sent.on("error", () => undefined).end(body);
    await new Promise((resolve) => sent.once("close", resolve));
  });
  // A sibling is served meanwhile.
  const sibling = await tools.at.open({ sandboxed: true });
  assert.equal((await sibling.chat({ messages: [{ role: "user", content: "work" }] })).status, 200);
  enough.abort();
  await Promise.all(flood);
  assert.ok(seen.length < 1_000, `${seen.length} ran`);
  assert.deepEqual(tools.at.unseen, []);
});
