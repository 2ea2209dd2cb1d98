/** Live relay to clients that are not as fast, as new or as patient as the engine. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user", content: "hi" }];
const said = "Grüße – all that was said.";

/** The text in a stream of chat chunks. */
const textOf = (wire: string): string =>
  [...wire.matchAll(/"delta":\{"content":("(?:[^"\\]|\\.)*")/g)].map(([, json]) => JSON.parse(json ?? '""') as string).join("");

function ask({ proxy, key }: Client, { version = "1.1", messages = hi as unknown[] } = {}): string {
  const body = JSON.stringify({ model: "any", stream: true, messages });
  return `POST /v1/chat/completions HTTP/${version}\r\nhost: ${new URL(proxy.url).host}\r\nauthorization: Bearer ${key}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function connectTo({ proxy }: Client): Socket {
  const { hostname, port } = new URL(proxy.url);
  return connect(Number(port), hostname);
}

async function readUntil(socket: Socket, isEnough: (heard: string) => boolean): Promise<string> {
  const heard: Buffer[] = [];
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    heard.push(chunk as Buffer);
    if (isEnough(Buffer.concat(heard).toString())) break;
  }
  return Buffer.concat(heard).toString();
}

test("a client of HTTP/1.0 gets the stream without chunks", async () => {
  await using at = await proxyAt(() => ({ text: said }));
  const client = await at.open({ relay: "live" });
  const socket = connectTo(client);
  socket.write(ask(client, { version: "1.0" }));
  const heard = await readUntil(socket, (text) => text.includes("[DONE]"));
  socket.destroy();
  assert.doesNotMatch(heard, /transfer-encoding/i);
  const body = heard.slice(heard.indexOf("\r\n\r\n") + 4);
  assert.ok(
    body.split("\n\n").every((frame) => frame === "" || frame.startsWith("data: ")),
    body,
  );
  assert.equal(textOf(body), said);
});

test("of two requests that were sent on one connection at once the second begins when the first is answered", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(({ messages }) =>
    messages[0]?.content === "first" ? { text: "one", beforeEnd: hold.promise } : { text: "two" },
  );
  const client = await at.open({ relay: "live" });
  const socket = connectTo(client);
  for (const content of ["first", "second"]) socket.write(ask(client, { messages: [{ role: "user", content }] }));
  await client.logged("call_begun");
  // Another connection's call comes and goes meanwhile.
  await client.say([{ role: "user", content: "other" }]);
  assert.deepEqual(
    at.engine.requests.map(({ messages }) => messages[0]?.content),
    ["first", "other"],
  );
  hold.resolve();
  const heard = await readUntil(socket, (text) => text.split("[DONE]").length === 3);
  socket.destroy();
  const [, first = "", second = ""] = heard.split("HTTP/1.1 200 OK");
  assert.deepEqual([textOf(first), textOf(second)], ["one", "two"]);
  assert.deepEqual(at.unseen, []);
});

test("a client that does not read loses nothing, and holds no other client up", async () => {
  const long = "0123456789".repeat(6_000);
  await using at = await proxyAt(({ messages }) => ({ text: messages[0]?.content === "hi" ? long : said }));
  const client = await at.open({ relay: "live" });
  const socket = connectTo(client).pause();
  socket.write(ask(client));
  // Far more than the buffers of a connection hold was sampled, and nothing of it was read.
  await client.logged("call_finished");
  assert.equal((await client.say([{ role: "user", content: "you" }])).content, said);
  const heard = await readUntil(socket, (text) => text.slice(-100).includes("[DONE]"));
  socket.destroy();
  assert.equal(textOf(heard), long);
});

test("who comes back in the middle of a turn is shown what was said so far, and then the rest", async () => {
  const hold = Promise.withResolvers<void>();
  const tool_calls = [{ name: "bash", arguments: '{"command": "ls"}' }];
  await using at = await proxyAt(() => ({ reasoning: "Hm.", text: said, tool_calls, beforeEnd: hold.promise }));
  const client = await at.open({ relay: "live" });
  const first = connectTo(client);
  first.write(ask(client));
  await readUntil(first, (text) => textOf(text) === said);
  first.destroy();
  await client.logged("answered");
  const second = connectTo(client);
  second.write(ask(client));
  const soFar = await readUntil(second, (text) => textOf(text) !== "");
  assert.equal(textOf(soFar), said);
  hold.resolve();
  const whole = soFar + (await readUntil(second, (text) => text.includes("[DONE]")));
  second.destroy();
  assert.equal(textOf(whole), said);
  assert.match(whole, /"reasoning_content":"Hm\."/);
  assert.equal(whole.match(/"arguments":"\{\\"command\\": \\"ls\\"\}"/g)?.length, 1);
  assert.equal(at.engine.requests.length, 1);
});
