/** A task's allow-list against clients that try to go around it, with a scripted name server and upstreams on loopback. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { NetworkAccess, NetworkUse } from "../../../base/schema/network.ts";
import { isPublicAddress } from "../../../base/wire/public-address.ts";
import { type ForwardOptions, ForwardProxy } from "../../../sandboxes/network/forward-proxy.ts";
import { NetworkLog } from "../../../sandboxes/network/network-log.ts";

/** Everything listens on loopback; this stands for a public address. */
const public4 = "127.0.0.1";
const scripted = { resolve: async () => [public4], mayConnect: (address: string) => address === public4 };

type Setting = Partial<ForwardOptions> & { allow?: string[] };

/** A proxy with its port, and its log. */
async function started(t: TestContext, { allow = [], ...options }: Setting = {}) {
  const log = new NetworkLog();
  const access = allow.length > 0 ? NetworkAccess.parse({ allow }) : "public";
  const proxy = new ForwardProxy({ network: scripted, never: async () => new Set(), access, phase: "agent", log, ...options });
  const door = createServer({ allowHalfOpen: true }, (socket) => proxy.accept(socket)).listen(0, "127.0.0.1");
  await once(door, "listening");
  t.after(async () => {
    await proxy[Symbol.asyncDispose]();
    door.close();
  });
  const { port } = door.address() as AddressInfo;
  return { proxy, port, use: () => NetworkUse.parse(log.use()), reasons: () => log.use().refusals.map(({ reason }) => reason) };
}

/** An upstream that keeps what it was sent, and answers with `reply` to each request. */
async function upstream(t: TestContext, reply = "hello") {
  const seen: { url: string; headers: string[]; body: string }[] = [];
  const server = createHttpServer(async (request: IncomingMessage, response) => {
    seen.push({ url: request.url ?? "", headers: request.rawHeaders, body: await text(request) });
    response.writeHead(200, { "x-upstream": "yes" }).end(reply);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, seen };
}

/** A server that keeps the bytes of each connection and says one thing. */
async function recorder(t: TestContext, says = "") {
  const received: Buffer[] = [];
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, async (socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    received.push(await buffer(socket).catch(() => Buffer.from("cut")));
    socket.end(says);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, received, sockets };
}

/** Sends bytes and returns all that comes back. */
async function exchange(port: number, bytes: string | Buffer, { end = false } = {}): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  if (end) socket.end(bytes);
  else socket.write(bytes);
  const answer = await buffer(socket).catch(() => Buffer.from("reset"));
  socket.destroy();
  return answer.toString("latin1");
}

/** The first bytes of a TLS client that asks for a server. */
async function helloFor(servername: string | undefined): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connectTls({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", ...(servername && { servername }) });
  client.on("error", () => {});
  const [socket] = (await once(server, "connection")) as [Socket];
  const [bytes] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

test("plain HTTP goes to an allowed name, without what belongs to the connection, and its bytes are on the record", async (t) => {
  const { port: at, seen } = await upstream(t);
  const { port, use } = await started(t, { allow: [`example.org:${at}`] });
  const head = `POST http://Example.org:${at}/a?b=1 HTTP/1.1\r\nHost: example.org:${at}\r\n`;
  const more = "X-Mine: 1\r\nConnection: x-hop\r\nX-Hop: 1\r\nProxy-Authorization: Basic c2VjcmV0\r\nContent-Length: 3\r\n\r\nabc";
  const answer = await exchange(port, head + more);
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\nx-upstream: yes\r\n/);
  assert.match(answer, /connection: close/);
  assert.match(answer, /hello/);
  assert.deepEqual(
    seen.map(({ url, body }) => [url, body]),
    [["/a?b=1", "abc"]],
  );
  const names = seen[0]?.headers.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()) ?? [];
  assert.deepEqual(names.toSorted(), ["connection", "content-length", "host", "x-mine"]);
  const { destinations, refusals } = use();
  assert.deepEqual(refusals, []);
  assert.deepEqual(
    [destinations.length, destinations[0]?.host, destinations[0]?.port, destinations[0]?.connections],
    [1, "example.org", at, 1],
  );
  assert.ok((destinations[0]?.sent_bytes ?? 0) > 50 && (destinations[0]?.received_bytes ?? 0) > 20, JSON.stringify(destinations));
  assert.doesNotMatch(JSON.stringify(use()), /c2VjcmV0|b=1|X-Mine/i);
});

test("a tunnel carries TLS for its own name, unchanged, and an end of one side leaves the other open", async (t) => {
  const { port: at, received } = await recorder(t, "the end");
  const { port, use } = await started(t, { allow: [`*.example.org:${at}`] });
  const hello = await helloFor("a.example.org");
  const bytes = Buffer.concat([
    Buffer.from(`CONNECT a.example.org:${at} HTTP/1.1\r\nHost: a.example.org:${at}\r\n\r\n`),
    hello,
    Buffer.from("then"),
  ]);
  assert.equal(await exchange(port, bytes, { end: true }), "HTTP/1.1 200 Connection established\r\n\r\nthe end");
  assert.deepEqual(received[0], Buffer.concat([hello, Buffer.from("then")]));
  assert.deepEqual(use().destinations, [
    { phase: "agent", host: "a.example.org", port: at, connections: 1, sent_bytes: hello.length + 4, received_bytes: 7 },
  ]);
});

test("a handshake that comes byte by byte, and one that is split over records, name their server", async (t) => {
  const { port: at, received } = await recorder(t);
  const { port } = await started(t, { allow: [`a.org:${at}`] });
  const hello = await helloFor("a.org");
  const [head, body] = [hello.subarray(0, 3), hello.subarray(5)];
  const record = (part: Buffer) => Buffer.concat([head, Buffer.from([part.length >> 8, part.length & 255]), part]);
  const split = Buffer.concat([record(body.subarray(0, 50)), record(body.subarray(50))]);
  for (const bytes of [hello, split]) {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.setNoDelay(true);
    socket.write(`CONNECT a.org:${at} HTTP/1.1\r\nHost: a.org\r\n\r\n`);
    await once(socket, "data");
    for (const byte of bytes) socket.write(Buffer.from([byte]));
    socket.end();
    await once(socket.resume(), "close");
  }
  assert.deepEqual(received, [hello, split]);
});

test("a tunnel without TLS is read as HTTP for its own name, request by request", async (t) => {
  const { port: at, seen } = await upstream(t);
  const { port, reasons } = await started(t, { allow: [`a.org:${at}`] });
  const connecting = `CONNECT a.org:${at} HTTP/1.1\r\nHost: a.org:${at}\r\n\r\n`;
  const get = (host: string, path = "/x") => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  assert.match(await exchange(port, connecting + get(`a.org:${at}`)), /established\r\n\r\nHTTP\/1\.1 200 OK[\s\S]*hello/);
  assert.match(await exchange(port, connecting + get("other.org")), /HTTP\/1\.1 400/);
  assert.match(await exchange(port, connecting + get(`a.org:${at}`, "http://other.org/")), /HTTP\/1\.1 400/);
  assert.match(await exchange(port, `${connecting}CONNECT other.org:443 HTTP/1.1\r\nHost: other.org\r\n\r\n`), /HTTP\/1\.1 400/);
  assert.match(await exchange(port, `${connecting}SSH-2.0-client\r\n`), /HTTP\/1\.1 400/);
  assert.equal(seen.length, 1);
  assert.deepEqual([...new Set(reasons())], ["host_differs", "not_understood", "not_a_name"]);
});

test("no address in any spelling is a name, nor a name outside the list, nor a port that is not in it", async (t) => {
  const { port, use } = await started(t, { allow: ["example.org", "*.example.net", "git.example.org:8443"] });
  const refused = {
    not_a_name: [
      ...["127.0.0.1:443", "1.1.1.1:443", "[::1]:443", "[::ffff:7f00:1]:80", "2130706433:80", "0x7f.1:80", "127.1:80", "0177.0.0.1:443"],
      ...[
        "example.org",
        "user:pass@example.org:443",
        "exämple.org:443",
        "example.org.:0",
        "example.org:99999",
        "a..org:443",
        "%65xample.org:443",
      ],
    ],
    name_not_allowed: [
      "evil.org:443",
      "localhost:443",
      "example.net:443",
      "notexample.net:443",
      "example.org.evil.org:443",
      "metadata.google.internal:80",
    ],
    port_not_allowed: ["example.org:22", "example.org:8443", "a.example.net:8000", "git.example.org:443"],
  };
  for (const [reason, authorities] of Object.entries(refused))
    for (const authority of authorities) {
      const answer = await exchange(port, Buffer.from(`CONNECT ${authority} HTTP/1.1\r\nHost: x\r\n\r\n`, "latin1"));
      assert.match(answer, reason === "not_a_name" ? /^HTTP\/1\.1 400 / : /^HTTP\/1\.1 403 /, authority);
      assert.ok(answer.includes(reason) || /not_understood/.test(answer), `${authority}: ${answer}`);
    }
  assert.doesNotMatch(JSON.stringify(use()), /pass|user/);
  assert.deepEqual(use().destinations, []);
});

test("a name that has one address of the operator's network is refused, whatever the other addresses are", async (t) => {
  const inside = [
    "127.0.0.1",
    "10.1.2.3",
    "169.254.169.254",
    "168.63.129.16",
    "100.64.0.1",
    "::ffff:10.0.0.1",
    "fd00:ec2::254",
    "fe80::1",
    "224.0.0.1",
  ];
  for (const address of inside) {
    const network = { resolve: async () => ["1.1.1.1", address], mayConnect: isPublicAddress };
    const { port, reasons } = await started(t, { allow: ["a.org"], network });
    assert.match(await exchange(port, "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org\r\n\r\n"), /^HTTP\/1\.1 403 /);
    assert.deepEqual(reasons(), ["address_not_public"], address);
  }
});

test("a name that leads elsewhere at its second look goes where the first look was, once a connection", async (t) => {
  const { port: at, seen } = await upstream(t);
  const answers = [[public4], ["10.0.0.1"]];
  let looks = 0;
  const resolve = async () => answers[looks++] ?? [];
  const { port, reasons } = await started(t, { allow: [`a.org:${at}`], network: { ...scripted, resolve } });
  const get = `GET http://a.org:${at}/ HTTP/1.1\r\nHost: a.org:${at}\r\n\r\n`;
  assert.match(await exchange(port, get), /^HTTP\/1\.1 200 /);
  assert.equal(looks, 1);
  assert.match(await exchange(port, get), /^HTTP\/1\.1 403 /);
  assert.match(await exchange(port, get), /^HTTP\/1\.1 502 /);
  assert.deepEqual([seen.length, reasons()], [1, ["address_not_public", "name_unknown"]]);
});

test("a redirect is handed on, and where it leads is asked for and checked anew", async (t) => {
  const server = createHttpServer((_request, response) => response.writeHead(302, { location: "http://169.254.169.254/latest" }).end());
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const at = (server.address() as AddressInfo).port;
  const { port, use } = await started(t, { allow: [`a.org:${at}`] });
  assert.match(
    await exchange(port, `GET http://a.org:${at}/ HTTP/1.1\r\nHost: a.org:${at}\r\n\r\n`),
    /302 Found\r\nlocation: http:\/\/169/,
  );
  assert.match(await exchange(port, "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"), /^HTTP\/1\.1 400 /);
  assert.deepEqual(use().refusals, [{ phase: "agent", host: "169.254.169.254", port: null, reason: "not_a_name", times: 1 }]);
});

test("a handshake for another server, for none, or with a hidden name is ended, and nothing of it is sent on", async (t) => {
  const { port: at, received } = await recorder(t);
  const { port, reasons } = await started(t, { allow: [`a.org:${at}`] });
  const hidden = withExtension(await helloFor("a.org"), 0xfe0d, Buffer.from([0]));
  const twice = withExtension(await helloFor("a.org"), 0, Buffer.from([0, 8, 0, 0, 5, ...Buffer.from("b.org")]));
  for (const hello of [await helloFor("b.org"), await helloFor(undefined), hidden, twice]) {
    const answer = await exchange(port, Buffer.concat([Buffer.from(`CONNECT a.org:${at} HTTP/1.1\r\nHost: a.org\r\n\r\n`), hello]));
    assert.ok(answer.endsWith("established\r\n\r\n\x15\x03\x03\0\x02\x02p"), answer);
  }
  assert.deepEqual(
    received.filter((bytes) => bytes.length > 0),
    [],
  );
  assert.deepEqual(reasons(), ["server_name_differs", "server_name_hidden", "not_understood"]);
});

/** The same ClientHello with one more extension at its end. */
function withExtension(hello: Buffer, type: number, content: Buffer): Buffer {
  const more = Buffer.concat([Buffer.from([type >> 8, type & 255, 0, content.length]), content]);
  const bytes = Buffer.concat([hello, more]);
  bytes.writeUInt16BE(bytes.readUInt16BE(3) + more.length, 3);
  bytes.writeUIntBE(bytes.readUIntBE(6, 3) + more.length, 6, 3);
  let at = 5 + 4 + 2 + 32;
  at += 1 + (bytes[at] ?? 0);
  at += 2 + bytes.readUInt16BE(at);
  at += 1 + (bytes[at] ?? 0);
  bytes.writeUInt16BE(bytes.readUInt16BE(at) + more.length, at);
  return bytes;
}

test("two readings of one request are no request: Host that differs, two lengths, requests behind requests", async (t) => {
  const { port: at, seen } = await upstream(t);
  const { port, reasons } = await started(t, { allow: [`a.org:${at}`] });
  const line = `POST http://a.org:${at}/ HTTP/1.1\r\n`;
  const own = `Host: a.org:${at}\r\n`;
  const bad = [
    `${line}Host: evil.org\r\n\r\n`,
    `${line}Host: a.org:${at + 1}\r\n\r\n`,
    `${line}${own}Host: evil.org\r\n\r\n`,
    `${line}\r\n`,
    `${line}${own}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `${line}${own}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`,
    `${line}${own}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
    `${line}${own}X: a\nEvil: b\rc\r\n\r\n`,
    `GET / HTTP/1.1\r\n${own}\r\n`,
    `GET https://a.org:${at}/ HTTP/1.1\r\n${own}\r\n`,
    `GET http://evil.org@a.org:${at}/ HTTP/1.1\r\n${own}\r\n`,
    `GET http://a.org:${at}\\@evil.org/ HTTP/1.1\r\n${own}\r\n`,
  ];
  for (const request of bad) assert.match(await exchange(port, request), /^HTTP\/1\.1 400 /, request);
  assert.deepEqual(seen, []);
  assert.deepEqual([...new Set(reasons())].toSorted(), ["host_differs", "not_a_name", "not_understood"]);
  // The body of one request may look like another: it stays a body. What follows it is not read.
  const inner = `GET http://a.org:${at}/inner HTTP/1.1\r\n${own}\r\n`;
  await exchange(port, `${line}${own}Content-Length: ${inner.length}\r\n\r\n${inner}${inner}`);
  await exchange(port, `${line}${own}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n${inner}`);
  assert.deepEqual(
    seen.map(({ url, body }) => [url, body]),
    [
      ["/", inner],
      ["/", "abc"],
    ],
  );
});

test("heads that are slow, endless or never come end their connection, and so does a tunnel without a word", async (t) => {
  const { port: at } = await recorder(t);
  const { port, reasons } = await started(t, { allow: [`a.org:${at}`], bounds: { head_ms: 100 } });
  assert.equal(await exchange(port, "GET http://a.org/ HTTP/1.1\r\nHost: a"), "");
  assert.equal(await exchange(port, ""), "");
  assert.match(await exchange(port, `CONNECT a.org:${at} HTTP/1.1\r\nHost: a.org\r\n\r\n\x16\x03`), /established\r\n\r\n$/);
  assert.match(await exchange(port, `GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nX: ${"x".repeat(20_000)}`), /^HTTP\/1\.1 400 /);
  const long = Buffer.concat([
    Buffer.from(`CONNECT a.org:${at} HTTP/1.1\r\nHost: a.org\r\n\r\n`),
    Buffer.from([0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xff]),
    Buffer.alloc(20_000),
  ]);
  assert.ok((await exchange(port, long)).includes("established\r\n\r\n\x15"));
  assert.deepEqual([...new Set(reasons())], ["too_slow", "not_understood"]);
});

test("connections, bytes and time without a byte are bounded", async (t) => {
  const { port: at } = await upstream(t, "x".repeat(300_000));
  const { port, use, reasons } = await started(t, { allow: [`a.org:${at}`], bounds: { connections: 2, bytes: 100_000 } });
  const idle = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
  await Promise.all(idle.map((socket) => once(socket, "connect")));
  while (reasons().length === 0) await exchange(port, "");
  for (const socket of idle) socket.destroy();
  const get = `GET http://a.org:${at}/ HTTP/1.1\r\nHost: a.org:${at}\r\n\r\n`;
  let answer = "";
  while (!answer.startsWith("HTTP/1.1 200")) answer = await exchange(port, get);
  assert.ok(answer.length < 250_000, `${answer.length} characters`);
  assert.match(await exchange(port, get), /^HTTP\/1\.1 403 [\s\S]*bytes_spent/);
  assert.deepEqual([...new Set(reasons())], ["too_many_connections", "bytes_spent"]);
  assert.equal(use().destinations[0]?.connections, 1);

  const silent = await recorder(t);
  const other = await started(t, { allow: [`a.org:${silent.port}`], bounds: { idle_ms: 50 } });
  const hello = await helloFor("a.org");
  const asks = Buffer.concat([Buffer.from(`CONNECT a.org:${silent.port} HTTP/1.1\r\nHost: a.org\r\n\r\n`), hello]);
  assert.match(await exchange(other.port, asks), /^HTTP\/1\.1 200 /);
});

test("an engine is not reached by its name, nor by another name of its address", async (t) => {
  const { port: at, seen } = await upstream(t);
  const never = async () => new Set(["engine.org", "127.0.0.1"]);
  const { port, reasons } = await started(t, { allow: [`engine.org:${at}`, `other.org:${at}`], never });
  for (const name of ["engine.org", "other.org"])
    assert.match(await exchange(port, `GET http://${name}:${at}/ HTTP/1.1\r\nHost: ${name}:${at}\r\n\r\n`), /^HTTP\/1\.1 403 /);
  assert.deepEqual([seen, reasons()], [[], ["engine_address", "engine_address"]]);
});

test("a client that leaves before its turn leaves its place", async (t) => {
  const { port, use, reasons } = await started(t, { bounds: { connections: 200 } });
  const clients = Array.from({ length: 160 }, () => connect(port, "127.0.0.1").on("error", () => {}));
  await Promise.all(clients.map((client) => once(client, "connect")));
  for (const client of clients) client.destroy();
  assert.match(await exchange(port, "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n"), /name_unknown|not_public|502|403/);
  assert.deepEqual([use().refusals.length, reasons().includes("too_slow")], [1, false]);
});

test("when it is closed all that it carries is cut, on both sides", async (t) => {
  const { port: at, sockets } = await recorder(t);
  const { port, proxy } = await started(t, { allow: [`a.org:${at}`] });
  const client = connect(port, "127.0.0.1");
  client.on("error", () => {});
  client.write(Buffer.concat([Buffer.from(`CONNECT a.org:${at} HTTP/1.1\r\nHost: a.org\r\n\r\n`), await helloFor("a.org")]));
  await once(client, "data");
  while (sockets.length === 0) await new Promise(setImmediate);
  const ended = Promise.all([once(client, "close"), once(sockets[0] as Socket, "close")]);
  await proxy[Symbol.asyncDispose]();
  await ended;
  assert.equal(await exchange(port, "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n"), "");
});

test("the record holds so many names and counts the rest", async (t) => {
  const log = new NetworkLog();
  for (let at = 0; at < 1_000; at++) log.refused("agent", { host: `x${at}.org`, port: 443 }, "name_not_allowed");
  for (let at = 0; at < 1_000; at++) log.opened("agent", { host: `x${at}.org`, port: 443 })(1, 1);
  const { destinations, refusals, left_out } = NetworkUse.parse(log.use());
  assert.deepEqual([destinations.length, refusals.length, left_out, log.bytes], [200, 200, 1_600, 2_000]);
  t.diagnostic(`${JSON.stringify(log.use()).length} bytes`);
});
