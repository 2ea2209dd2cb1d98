/** The relay between a harness and the services of its task: what it hands on, and what it writes down. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js";
import { latestVersion, protocolVersions } from "../../../proxy/tools/mcp.ts";
import { picture, placeOf, rawService, type Seen, sdkService, shopServer, usualAnswer } from "../../fakes/tools/tool-services.ts";
import { callText, toolsAt } from "../../fakes/tools/tools-at.ts";

const shop = { name: "shop", service: "shop", port: 8000 };

test("a harness gets the tools of a service, sorted, with the server's own words, and its calls run there", async () => {
  const seen: Seen = [];
  await using tools = await toolsAt({ servers: [shop], place: placeOf({ shop: sdkService(() => shopServer(seen)) }) });
  const mcp = await tools.mcp();
  assert.equal(mcp.getInstructions(), "Ask for an order first.");
  assert.deepEqual(mcp.getServerVersion(), { name: "shop", version: "2.1" });
  const { tools: listed } = await mcp.listTools();
  assert.deepEqual(
    listed.map(({ name }) => name),
    ["cancel_order", "fail", "find_order", "large", "screen", "wait"],
  );
  const result = await mcp.callTool({ name: "find_order", arguments: { id: "W1" } });
  assert.deepEqual(result.content, [{ type: "text", text: "order W1 is open" }]);
  const failed = await mcp.callTool({ name: "fail" });
  assert.equal(failed.isError, true);
  assert.deepEqual(seen, [
    { tool: "find_order", args: { id: "W1" } },
    { tool: "fail", args: {} },
  ]);
  const { begun, finished } = await tools.runs();
  assert.deepEqual(
    begun.map(({ tool, arguments: text, ordinal }) => [tool, text, ordinal]),
    [
      ["find_order", '{"id":"W1"}', 0],
      ["fail", "", 1],
    ],
  );
  assert.deepEqual(
    finished.map(({ is_error, failure, parts }) => [is_error, failure, parts]),
    [
      [false, undefined, [{ type: "text", bytes: 16 }]],
      [true, undefined, [{ type: "text", bytes: 12 }]],
    ],
  );
  assert.deepEqual(tools.at.unseen, []);
});

test("the protocol's versions are those of its SDK, but for the first draft", () => {
  assert.equal(latestVersion, LATEST_PROTOCOL_VERSION);
  assert.deepEqual(
    [...protocolVersions],
    SUPPORTED_PROTOCOL_VERSIONS.filter((version) => version !== "2024-10-07"),
  );
});

test("structured content beside a picture is left out, and the picture's own bytes are on record", async () => {
  await using tools = await toolsAt({ servers: [shop], place: placeOf({ shop: sdkService(() => shopServer([])) }) });
  const mcp = await tools.mcp();
  const result = await mcp.callTool({ name: "screen" });
  assert.deepEqual(result.content, [{ type: "image", data: picture, mimeType: "image/png" }]);
  assert.equal(result.structuredContent, undefined);
  const bytes = Buffer.from(picture, "base64");
  const { finished } = await tools.runs();
  assert.deepEqual(finished[0]?.parts, [{ type: "image", bytes: bytes.length, media_type: "image/png", sha256: hash("sha256", bytes) }]);
});

test("what has no picture passes byte for byte, arguments and results alike", async () => {
  // Numbers that a parser rounds, keys that it sorts or drops, white space.
  const result = '{ "content": [{"type":"text","text":"\\u00e9\\/"}], "structuredContent": {"b":1.0,"10":12345678901234567890,"2":1e2} }';
  const args = '{"id":1.0, "n":12345678901234567890,"10":1,"2":2}';
  const tool = '{"name":"odd","inputSchema":{"type":"object","properties":{"10":{},"2":{"maximum":1.0}}}}';
  let sent = "";
  const service = rawService((message) => {
    if (message.method !== "tools/call") return usualAnswer(message, `[${tool}]`);
    return `{"jsonrpc":"2.0","id":${message.id},"result":${result}}`;
  });
  service.on("request", (incoming) => {
    let body = "";
    incoming.on("data", (piece: Buffer) => {
      body += piece;
    });
    incoming.on("end", () => {
      if (body.includes("tools/call")) sent = body;
    });
  });
  await using tools = await toolsAt({ servers: [shop], place: placeOf({ shop: service }) });
  const { text } = await tools.post(callText("odd", args, "a\u2028b"));
  assert.equal(text, `{"jsonrpc":"2.0","id":"a\u2028b","result":${result}}`);
  assert.equal(
    (await tools.post('{"jsonrpc":"2.0","id":2,"method":"tools/list"}')).text,
    `{"jsonrpc":"2.0","id":2,"result":{"tools":[${tool}]}}`,
  );
  assert.ok(sent.includes(`"arguments":${args}`), sent);
  const { begun, finished } = await tools.runs();
  assert.equal(begun[0]?.arguments, args);
  assert.equal(finished[0]?.result_sha256, hash("sha256", result));
});

test("a server gives only the tools that are allowed, and no other is called there", async () => {
  const seen: Seen = [];
  const place = placeOf({ shop: sdkService(() => shopServer(seen)) });
  await using tools = await toolsAt({ servers: [{ ...shop, allow: ["find_order"] }], place });
  const mcp = await tools.mcp();
  assert.deepEqual(
    (await mcp.listTools()).tools.map(({ name }) => name),
    ["find_order"],
  );
  await assert.rejects(mcp.callTool({ name: "cancel_order", arguments: { id: "W1" } }), /Unknown tool: cancel_order/);
  // A parser may read either of two names: the service gets one alone.
  const twice =
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cancel_order","name":"find_order","arguments":{"id":"W1"}}}';
  await tools.post(twice);
  assert.deepEqual(seen, [{ tool: "find_order", args: { id: "W1" } }]);
  assert.equal((await tools.runs()).begun.length, 1);
});

test("the list is asked for once and stays the same, whatever the service says later", async () => {
  let lists = 0;
  const service = rawService((message) => {
    if (message.method === "tools/list") lists++;
    return usualAnswer(message, `[{"name":"tool_${lists}"}]`);
  });
  await using tools = await toolsAt({ servers: [shop], place: placeOf({ shop: service }) });
  const ask = () => tools.post('{"jsonrpc":"2.0","id":2,"method":"tools/list"}');
  assert.equal((await ask()).text, '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"tool_1"}]}}');
  assert.equal((await ask()).text, '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"tool_1"}]}}');
  assert.equal(lists, 1);
});

test("equal lists give equal fingerprints, in whatever order and on however many pages the service gives them", async () => {
  const fingerprints: (string | undefined)[] = [];
  for (const pages of [[["a", "b"]], [["b"], ["a"]], [["a"]]]) {
    const service = rawService((message) => {
      const cursor = Number((message.params as { cursor?: string } | undefined)?.cursor ?? 0);
      if (message.method !== "tools/list") return usualAnswer(message, "[]");
      const tools = pages[cursor]?.map((name) => `{"name":"${name}"}`).join(",");
      const next = cursor + 1 < pages.length ? `,"nextCursor":"${cursor + 1}"` : "";
      return `{"jsonrpc":"2.0","id":${message.id},"result":{"tools":[${tools}]${next}}}`;
    });
    await using tools = await toolsAt({ servers: [shop], place: placeOf({ shop: service }) });
    fingerprints.push((await tools.client.trajectory()).fidelity.fingerprints.tool_servers);
  }
  const [one, paged, other] = fingerprints;
  assert.ok(one);
  assert.equal(paged, one);
  assert.notEqual(other, one);
});

test("only the session's own connections reach its tools, and a name that it has not is no route", async () => {
  await using tools = await toolsAt({ servers: [shop], place: placeOf({ shop: sdkService(() => shopServer([])) }) });
  const { proxy } = tools.at;
  const list = { method: "POST", body: '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' };
  for (const url of [`${proxy.url}/mcp/shop`, `${proxy.url}/s/${tools.client.key}/mcp/shop`, `${tools.url}/mcp/bank`])
    assert.equal((await fetch(url, { ...list, headers: { authorization: `Bearer ${tools.client.key}` } })).status, 404, url);
  assert.equal((await fetch(`${tools.url}/mcp/shop`, list)).status, 200);
  assert.equal((await fetch(`${tools.url}/mcp/shop`)).status, 405);
});

test("a tool run belongs to the model's call with its name and arguments, once; any other run is unasked", async () => {
  const place = placeOf({ shop: sdkService(() => shopServer([])) });
  const asks = [
    { id: "x1", name: "mcp__shop__find_order", arguments: '{ "id": "W1" }' },
    { id: "x2", name: "mcp__shop__find_order", arguments: '{"id":"W1"}' },
    { id: "x3", name: "shop_cancel_order", arguments: '{"id":"W2"}' },
  ];
  await using tools = await toolsAt({ servers: [shop], place, script: () => ({ tool_calls: asks }) });
  const message = await tools.client.say([{ role: "user", content: "find it" }]);
  const ids = (message.tool_calls as { id: string }[]).map(({ id }) => id);
  const mcp = await tools.mcp();
  await mcp.callTool({ name: "cancel_order", arguments: { id: "W2" } });
  for (let times = 0; times < 3; times++) await mcp.callTool({ name: "find_order", arguments: { id: "W1" } });
  await mcp.callTool({ name: "cancel_order", arguments: { id: "W1" } });
  const { tool_runs } = await tools.client.trajectory();
  assert.deepEqual(
    tool_runs?.map(({ tool, tool_call_id, unasked, outcome }) => [tool, tool_call_id, unasked, outcome]),
    [
      ["cancel_order", ids[2], false, "ok"],
      ["find_order", ids[0], false, "ok"],
      ["find_order", ids[1], false, "ok"],
      ["find_order", null, true, "ok"],
      ["cancel_order", null, true, "ok"],
    ],
  );
});
