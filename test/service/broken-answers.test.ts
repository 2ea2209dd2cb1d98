/** Both clients of the service behind a wire that breaks its answers: nothing is lost, and what cannot be read ends as an error. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ServiceClient } from "../../index.ts";
import { wholeLines } from "../../service/client/whole-lines.ts";
import type { Claim } from "../../service/ledger/index.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { served } from "../fakes/proxies/served.ts";
import { serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { need } from "../needs.ts";

/** Answers in the service's place where it returns true. `body`: what the service says. */
type Fault = (request: IncomingMessage, response: ServerResponse, body: Buffer) => boolean;

/** A service with a set `s` of two results that is drained, and the URL of a wire to it. */
async function broken(t: TestContext, fault: Fault): Promise<string> {
  const { url: target, ledger, lease, call } = await serviceAt(t);
  const { set_id } = (await call("PUT", "/sets/s", { samples: 1 })).body;
  const lines = ["g", "h"].map((group_key) => JSON.stringify({ group_key, task: serviceTask }));
  await call("POST", `/sets/${set_id}/groups`, lines.join("\n"));
  for (const claim of (await ledger.claim(lease, 2)) as Claim[]) await ledger.finish(claim, attemptResult({ reward: 1 }));
  await call("POST", `/sets/${set_id}/drain`, {});
  return wire(t, async (request, response) => {
    const { method = "GET", url = "", headers } = request;
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
    const sent = { method, headers: { authorization: headers.authorization ?? "" } };
    const answer = await fetch(target + url, chunks.length === 0 ? sent : { ...sent, body: Buffer.concat(chunks) });
    const body = Buffer.from(await answer.arrayBuffer());
    if (fault(request, response, body)) return;
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" }).end(body);
  });
}

async function wire(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = await served(createServer(answer));
  t.after(() => server[Symbol.asyncDispose]());
  return server.url;
}

/** The first so many answers of those paths break off behind so many bytes. */
function cut(path: RegExp, times: number, bytes: (body: Buffer) => number): Fault {
  let left = times;
  return ({ url = "" }, response, body) => {
    if (!path.test(url) || left === 0) return false;
    left -= 1;
    response.flushHeaders();
    response.write(body.subarray(0, bytes(body)), () => response.destroy());
    return true;
  };
}

async function python(t: TestContext, script: string, url: string): Promise<string | null> {
  if (!(await need(t, "python"))) return null;
  return (await pythonClient(`import sys, alidade\n${script}`, url)).trim();
}

async function keysOf(url: string): Promise<string[]> {
  await using client = ServiceClient.at(url, "all");
  const run = await client.set("s", { samples: 1 });
  return (await Array.fromAsync(run.groups({ payload: "none" }))).map(({ group_key }) => group_key);
}

const pythonKeys = "print(*[group.key for group in alidade.Service(sys.argv[1], 'all').set('s', samples=1).groups(payload='none')])";

const cuts: [string, (body: Buffer) => number][] = [
  ["before its first line", () => 0],
  ["within its first line", () => 9],
  ["within its second line", (body) => body.indexOf("\n") + 9],
];
for (const [where, bytes] of cuts)
  test(`all results of a set that is over come, each once, though an answer breaks off ${where}`, { timeout: 300_000 }, async (t) => {
    assert.deepEqual(await keysOf(await broken(t, cut(/results/, 2, bytes))), ["g", "h"]);
    const keys = await python(t, pythonKeys, await broken(t, cut(/results/, 2, bytes)));
    assert.equal(keys ?? "g h", "g h");
  });

test("a line that can never be read is an error when the client's patience is over", { timeout: 300_000 }, async (t) => {
  const url = await broken(
    t,
    cut(/results/, Number.POSITIVE_INFINITY, () => 9),
  );
  await using client = ServiceClient.at(url, "all", { patience: 0.3 });
  const run = await client.set("s", { samples: 1 });
  await assert.rejects(Array.fromAsync(run.results()), /the answer of http:\S+\/results broke off: /);
  const script = `
try:
    list(alidade.Service(sys.argv[1], "all", patience=0.3).set("s", samples=1).groups())
except ConnectionError as error:
    print(error)`;
  assert.match((await python(t, script, url)) ?? "no service answers after", /no service answers after/);
});

test("a client without a service.json says in time what it waits for, and what to do", { timeout: 300_000 }, async (t) => {
  const script = `
import contextlib, io
said = io.StringIO()
with contextlib.redirect_stderr(said):
    try:
        alidade.Service(folder=sys.argv[1], patience=4).set("s")
    except ConnectionError as error:
        print(error)
print(said.getvalue())`;
  const told = await python(t, script, "/no/such/folder");
  if (told === null) return;
  assert.match(told, /no service answers after 4 s: there is no \/no\/such\/folder\/service\.json; start `alidade service`/);
  assert.match(told, /waiting up to \d s for the service: there is no \/no\/such\/folder\/service\.json/);
});

test("an answer that breaks off behind its headers is asked for again", async (t) => {
  const fault = () => cut(/sets$/, 1, (body) => body.length - 1);
  await using client = ServiceClient.at(await broken(t, fault()), "all");
  assert.deepEqual(
    (await client.sets()).map(({ key }) => key),
    ["s"],
  );
  const script = "print(*[one['key'] for one in alidade.Service(sys.argv[1], 'all').request('GET', '/sets')['sets']])";
  assert.equal((await python(t, script, await broken(t, fault()))) ?? "s", "s");
});

test("a 503 of a proxy in front of the service is not its health", async (t) => {
  let times = 0;
  const url = await broken(t, ({ url = "" }, response) => {
    if (url !== "/health" || times++ > 0) return false;
    response.writeHead(503, { "content-type": "text/html" }).end("<html>no backend</html>");
    return true;
  });
  await using client = ServiceClient.at(url, "all");
  assert.equal((await client.health()).status, "ok");
  assert.equal(times, 2);
});

test("headers may take as long as the question says, and a body as long as its reader", async (t) => {
  // The clock of undici's own limits, which its package keeps for tests.
  const clock = createRequire(import.meta.url)("undici/lib/util/timers.js") as { tick(ms: number): void };
  const slow = await wire(t, (_, response) => {
    // A limit counts from the first tick that it sees.
    clock.tick(1);
    clock.tick(650_000);
    setTimeout(() => response.end('"paused"'), 50);
  });
  await using client = ServiceClient.at(slow, "all", { patience: 0 });
  assert.equal(await client.ask({ path: "/control/pause", seconds: 600 }), "paused");

  const headersMs = 500;
  const over = AbortSignal.timeout(2 * headersMs);
  const slowReader = await wire(t, (_, response) => {
    response.write('"first"\n');
    over.addEventListener("abort", () => response.end('"second"\n'));
    if (over.aborted) response.end('"second"\n');
  });
  await using trainer = ServiceClient.at(slowReader, "all");
  const lines = trainer.lines({ path: "/", seconds: headersMs / 1000 - 60 });
  assert.deepEqual(await Array.fromAsync(lines), ["first", "second"]);
});

test("a line is whole wherever its bytes are parted, and a long one is read in one go", { timeout: 20_000 }, async () => {
  const text = '{"a":"ä"}\n\n{"b":"€"}\n';
  for (let at = 0; at <= Buffer.byteLength(text); at++) {
    const bytes = Buffer.from(text);
    assert.deepEqual(await Array.fromAsync(wholeLines([bytes.subarray(0, at), bytes.subarray(at)])), ['{"a":"ä"}', '{"b":"€"}']);
  }
  await assert.rejects(Array.fromAsync(wholeLines([Buffer.from('{"a":1}\n{"b"')])), /its last line has no end/);
  const piece = Buffer.alloc(4_096, "x");
  const pieces = 8_192;
  async function* long() {
    for (let at = 0; at < pieces; at++) {
      await setImmediate();
      yield piece;
    }
    yield Buffer.from("\n");
  }
  const [line] = await Array.fromAsync(wholeLines(long()));
  assert.equal(line?.length, pieces * piece.length);
});
