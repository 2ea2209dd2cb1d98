/** An engine that repeats the key it was given, in every way that servers do: the key reaches no client and no record. */
import assert from "node:assert/strict";
import { request as ask, createServer, type ServerResponse } from "node:http";
import { test } from "node:test";
import { newKey } from "../../../base/schema/ids.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { cases } from "../../contracts/engine-cases.ts";
import { cli } from "../../fakes/processes/cli.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";
import { type Served, served } from "../../fakes/proxies/served.ts";

const key = "sk-vendor/4f9a+Zq81LmXw07TtRrBbNn55==";
const base64 = Buffer.from(`user:${key}`).toString("base64");
const spellings = [key, encodeURIComponent(key), base64, key.replaceAll("/", "\\/"), key.slice(0, 14), key.slice(-14)];

/** What it answers to a generation: a status and the body, each piece in a packet of its own. */
type Attack = { status: number; type: string; pieces: string[] };

/** In front of a scripted server; once there is an attack every generation gets it. */
async function repeating(url: string, attack: () => Attack | null): Promise<Served> {
  return await served(
    createServer((incoming, outgoing) => {
      const now = incoming.method === "POST" ? attack() : null;
      if (now) return void incoming.resume().on("end", () => void answer(now, outgoing));
      const { method, headers } = incoming;
      const onward = ask(url + incoming.url, { method, headers, agent: false }, (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      });
      // A question of the proxy's own may still be asked when the test is over and the server gone.
      onward.on("error", () => outgoing.destroy());
      incoming.pipe(onward);
    }),
  );
}

async function answer({ status, type, pieces }: Attack, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(status, { "content-type": type });
  for (const piece of pieces) {
    await new Promise((resolve) => outgoing.write(piece, resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
  outgoing.end();
}

const inJson = (message: string) =>
  JSON.stringify({ type: "error", error: { type: "api_error", code: 401, status: "UNAUTHENTICATED", message } });
const halves = (text: string) => [text.slice(0, text.indexOf(key) + 9), text.slice(text.indexOf(key) + 9)];
const sse = "text/event-stream";
const attacks: Record<string, Attack> = {
  "in a sentence": { status: 401, type: "application/json", pieces: [inJson(`Incorrect API key provided: ${key}.`)] },
  "in every spelling": { status: 400, type: "application/json", pieces: [inJson(spellings.join(" or "))] },
  "in a page": { status: 500, type: "text/html", pieces: [`<h1>Authorization: Bearer ${key}</h1>`] },
  "where the text is cut off": { status: 400, type: "text/plain", pieces: [`${" ".repeat(500 - 20)}${key}${" ".repeat(2000)}`] },
  "in a long page": { status: 400, type: "text/plain", pieces: [`${".".repeat(1_985)}${key}`] },
  "in two packets": { status: 400, type: "application/json", pieces: halves(inJson(`Bearer ${key}`)) },
  "in a stream": { status: 200, type: sse, pieces: [`event: error\ndata: ${inJson(`Bearer ${key}`)}\n\n`] },
  "in a stream, over two packets": { status: 200, type: sse, pieces: halves(`event: error\ndata: ${inJson(`Bearer ${key}`)}\n\n`) },
  "in a stream that is none": { status: 200, type: sse, pieces: [`data: {"choices": "${key}"}\n\n`, `data: ${key}\n\n`] },
  "in an answer that is none": { status: 200, type: "application/json", pieces: [`{"choices": "${key}", "error": "${key}"}`] },
};

function assertHidden(text: string, what: string): void {
  for (const spelling of spellings) assert.ok(!text.includes(spelling), `${what}: ${text.slice(0, 2_000)}`);
}

for (const [kind, { start }] of Object.entries(cases))
  test(`${kind}: a key that the server repeats is in no answer and in no record`, async () => {
    let attack: Attack | null = null;
    await using server = await start(() => ({ text: "Hello." }));
    await using relay = await repeating(server.url, () => attack);
    const engine = engineNamed(kind).create({ baseUrl: relay.url, apiKey: key });
    const told: string[] = [];
    const onError = (error: unknown, what: string) => void told.push(what, String(error instanceof Error ? error.stack : error));
    {
      await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test", onError });
      let hidden = 0;
      for (const [title, each] of Object.entries(attacks))
        for (const relayed of ["buffered", "live"] as const) {
          attack = each;
          const { session, key: sessionKey } = await proxy.openSession({ any_model: true, relay: relayed });
          const client = new Client(proxy, session.id, sessionKey);
          const messages = [{ role: "user", content: "hi" }];
          const response = await client.chat({ messages, stream: relayed === "live" });
          const body = await response.text();
          await client.settled();
          const records = JSON.stringify(await client.entries());
          for (const text of [body, records]) assertHidden(text, `${title}, ${relayed}`);
          hidden += records.split("[redacted]").length - 1;
          attack = null;
        }
      assert.ok(hidden > 0, "the server's words are there, without the key");
    }
    assertHidden(told.join("\n"), "stderr");
    await engine.close();
  });

/** In front of a scripted server that puts the key into each name that it tells: of models, weights and versions. */
async function renaming(url: string): Promise<Served> {
  const names = /("(?:model|modelVersion|version|weight_version|id|root)":\s?)"(?:scripted[^"]*|[a-z]+-[^"]*)"/g;
  return await served(
    createServer((incoming, outgoing) => {
      const { method, headers } = incoming;
      const onward = ask(url + incoming.url, { method, headers }, async (response) => {
        const text = (await Array.fromAsync(response as AsyncIterable<Buffer>)).map(String).join("");
        outgoing.writeHead(response.statusCode ?? 502, { "content-type": response.headers["content-type"] });
        outgoing.end(text.replace(names, (_, field: string) => `${field}${JSON.stringify(`name-of-${key}`)}`));
      });
      incoming.pipe(onward);
    }),
  );
}

for (const [kind, { start }] of Object.entries(cases))
  test(`${kind}: a key that the server puts into its names is in no answer and in no record, and what it sampled is as it was`, async () => {
    await using server = await start(() => ({ text: `It is ${key}.` }));
    await using relay = await renaming(server.url);
    const engine = engineNamed(kind).create({ baseUrl: relay.url, apiKey: key });
    {
      await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test" });
      assertHidden(JSON.stringify(proxy.facts), "facts");
      for (const relayed of ["buffered", "live"] as const) {
        const { session, key: sessionKey } = await proxy.openSession({ any_model: true, relay: relayed });
        const client = new Client(proxy, session.id, sessionKey);
        const response = await client.chat({ messages: [{ role: "user", content: "hi" }], stream: relayed === "live" });
        assert.equal(response.status, 200, await response.clone().text());
        await response.text();
        await client.settled();
        const finished = (await client.entries()).find((entry) => entry.type === "call_finished");
        assert.deepEqual(finished?.message?.parts, [{ type: "text", text: `It is ${key}.` }]);
        const { message: _, ...rest } = finished;
        assertHidden(JSON.stringify(rest), relayed);
        if (rest.engine_model !== null) assert.match(rest.engine_model, /\[redacted\]/);
      }
    }
    await engine.close();
  });

test("what a model says is given and recorded as it was sampled, a key in it too", async () => {
  await using server = await cases.vllm!.start(() => ({ text: `It is ${key}.` }));
  const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: key });
  {
    await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test" });
    const { session, key: sessionKey } = await proxy.openSession({ any_model: true });
    const client = new Client(proxy, session.id, sessionKey);
    assert.equal((await client.say([{ role: "user", content: "hi" }])).content, `It is ${key}.`);
    assert.ok(JSON.stringify(await client.entries()).includes(`It is ${key}.`));
  }
  await engine.close();
});

test("the control listener's answers and an engine that is added there repeat no key, and not the control token", async () => {
  const token = "a-control-token-of-ones-own";
  const variable = "ALIDADE_TEST_ENGINE_KEY";
  process.env[variable] = key;
  await using server = await cases.vllm!.start(() => ({ text: "Hello." }));
  await using hostile = await served(
    createServer((incoming, outgoing) =>
      outgoing.writeHead(401).end(`${incoming.headers.authorization} ${base64} ${token} http://me:secret@10.0.0.1/`),
    ),
  );
  const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: null });
  await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test", controlToken: token });
  const response = await fetch(`${proxy.controlUrl}/engines`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "hostile", url: hostile.url, api_key_env: variable }),
  });
  const text = await response.text();
  assert.equal(response.status, 502, text);
  assert.match(text, /\[redacted\]/);
  assertHidden(text, "POST /engines");
  for (const secret of [token, "me:secret"]) assert.ok(!text.includes(secret), text);
  await engine.close();
});

test("doctor and record print no key of an engine that repeats it", async () => {
  const sessionKey = newKey();
  await using hostile = await served(
    createServer((incoming, outgoing) => outgoing.writeHead(401).end(`${incoming.headers.authorization} ${sessionKey} ${base64}`)),
  );
  for (const command of [["doctor"], ["doctor", "--json"], ["record", "--", "true"]]) {
    const flags = ["--engine", hostile.url, "--api-key-env", "ENGINE_KEY"];
    const [verb = "", ...more] = command;
    const { stdout, stderr, code } = await cli([verb, ...flags, ...more], { env: { ENGINE_KEY: key } });
    assert.notEqual(code, 0);
    assertHidden(stdout + stderr, verb);
    assert.ok(!(stdout + stderr).includes(sessionKey));
    assert.match(stdout + stderr, /\[redacted\]/);
  }
});
