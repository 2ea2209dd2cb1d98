/** Clients that go: the vendors' SDKs in the middle of a stream, and one that closes as soon as it has read the last event. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import type { Answered } from "../../../base/schema/session-log.ts";
import { dialects } from "../../../proxy/dialects/registry.ts";
import { encode } from "../../fakes/engines/scripted-engine.ts";
import { dialectRequest } from "../../fakes/proxies/dialect-requests.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

type Place = { url: string; key: string };
type Asked = { body: never; signal: AbortSignal };

const openai = ({ url, key }: Place): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: key });
const sdks: Record<string, (place: Place, asked: Asked) => Promise<unknown>> = {
  "openai-chat": (place, { body, signal }) => openai(place).chat.completions.create(body, { signal }),
  "openai-responses": (place, { body, signal }) => openai(place).responses.create(body, { signal }),
  "openai-completions": (place, { body, signal }) => openai(place).completions.create(body, { signal }),
  "anthropic-messages": ({ url, key }, { body, signal }) => new Anthropic({ baseURL: url, apiKey: key }).messages.create(body, { signal }),
  "google-generate-content": ({ url, key }, { signal }) =>
    new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } }).models.generateContentStream({
      model: "scripted",
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
      config: {
        tools: [
          {
            functionDeclarations: [{ name: "bash", parametersJsonSchema: { type: "object", properties: { command: { type: "string" } } } }],
          },
        ],
        abortSignal: signal,
      },
    }),
};

const lastWords: Record<string, string> = {
  "openai-chat": "[DONE]",
  "openai-responses": "event: response.completed",
  "openai-completions": "[DONE]",
  "anthropic-messages": "event: message_stop",
  "google-generate-content": '"finishReason":"STOP"',
};

const said = "All that was said.";

for (const { name } of dialects) {
  test(`${name}: its SDK aborts in the middle of a stream; the engine goes on, and who asks again gets that turn`, async () => {
    const hold = Promise.withResolvers<void>();
    await using at = await proxyAt(() => ({ text: said, beforeEnd: hold.promise }));
    const client = await at.open({ purpose: "train", relay: "live" });
    const leave = new AbortController();
    const ask = sdks[name] ?? assert.fail(`${name} has no SDK here: add one`);
    const stream = await ask(
      { url: at.proxy.url, key: client.key },
      { body: dialectRequest(name, true).body as never, signal: leave.signal },
    );
    for await (const piece of stream as AsyncIterable<unknown>) if (JSON.stringify(piece).includes("All")) break;
    leave.abort();
    assert.equal((await answered(client)).delivery, "cut");
    assert.equal(at.engine.aborted, 0);
    hold.resolve();
    const { path, body } = dialectRequest(name, false);
    assert.ok((await (await client.post(path, body)).text()).includes(said));
    assert.equal(at.engine.requests.length, 1);
    const { calls, fidelity } = await client.trajectory();
    assert.deepEqual([calls.length, calls[0]?.outcome, fidelity.trainable_tokens], [1, "delivered", encode(said).length + 1]);
    assert.deepEqual(at.unseen, []);
  });

  test(`${name}: a client that closes as soon as it has read the last event was served`, async () => {
    for (const relay of ["buffered", "live"] as const) {
      await using at = await proxyAt(() => ({ text: said }));
      const client = await at.open({ purpose: "train", relay });
      await readUntil(lastWords[name] ?? assert.fail(`${name} has no last words here: add them`), client, name);
      assert.equal((await answered(client)).delivery, "complete", relay);
      const { path, body } = dialectRequest(name, false);
      await (await client.post(path, body)).text();
      assert.equal(at.engine.requests.length, 2, "the same question is a new sample");
      assert.deepEqual(at.unseen, []);
    }
  });
}

test("a turn that no client comes back for is cancelled at the engine 60 s after its client left, and what was sampled is kept", async (t) => {
  await using at = await proxyAt(() => ({ text: said, beforeEnd: new Promise(() => undefined) }));
  const client = await at.open({ purpose: "train", relay: "live" });
  const leave = new AbortController();
  const response = await client.chat({ messages: [{ role: "user", content: "hi" }], stream: true }, leave.signal);
  for await (const chunk of response.body ?? []) if (String(Buffer.from(chunk)).includes("All")) break;
  // The minute passes when the test says so; everything else goes on in its own time.
  t.mock.timers.enable({ apis: ["setTimeout"] });
  leave.abort();
  const { running } = at.proxy.session(client.sessionId);
  const [run] = running.inFlight();
  assert.ok(run, "it is being sampled");
  while (running.clientsOf(run.call).length > 0) await turnOfTheLoop();
  t.mock.timers.tick(59_999);
  for (let turn = 0; turn < 20; turn++) await turnOfTheLoop();
  assert.equal(at.engine.aborted, 0);
  t.mock.timers.tick(1);
  while (at.engine.aborted === 0) await turnOfTheLoop();
  t.mock.timers.reset();
  await run.settled.catch(() => undefined);
  const finished = (await client.entries()).find((entry) => entry.type === "call_finished");
  assert.deepEqual([finished?.error?.code, finished?.sampled_ids?.length], ["cancelled", encode(said).length + 1]);
  assert.match(finished?.error?.message ?? "", /left 60 s ago/);
  assert.equal((await client.trajectory()).fidelity.trainable_tokens, 0);
});

test("what a sandboxed client has left is not cancelled after any time", async (t) => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: said, beforeEnd: hold.promise }));
  const client = await at.open({ purpose: "train", sandboxed: true });
  const leave = new AbortController();
  const asked = client.chat({ messages: [{ role: "user", content: "hi" }], stream: true }, leave.signal).catch(() => undefined);
  while (at.engine.requests.length === 0) await turnOfTheLoop();
  t.mock.timers.enable({ apis: ["setTimeout"] });
  leave.abort();
  const { running } = at.proxy.session(client.sessionId);
  const [run] = running.inFlight();
  assert.ok(run, "it is being sampled");
  while (running.clientsOf(run.call).length > 0) await turnOfTheLoop();
  t.mock.timers.tick(24 * 3600_000);
  for (let turn = 0; turn < 20; turn++) await turnOfTheLoop();
  t.mock.timers.reset();
  await asked;
  hold.resolve();
  await run.settled;
  assert.equal(at.engine.aborted, 0);
  const { fidelity } = await client.trajectory();
  assert.deepEqual([fidelity.trainable_tokens, fidelity.excluded], [encode(said).length + 1, {}]);
});

const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** How the session's first answer ended. */
async function answered(client: Client): Promise<Answered> {
  for (;;) {
    const found = (await client.entries()).find((entry) => entry.type === "answered");
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Below HTTP, for no client closes as fast as one that does not care for the end of the body. */
async function readUntil(words: string, { proxy, key }: Client, name: string): Promise<void> {
  const { path, body } = dialectRequest(name, true);
  const { host, hostname, port } = new URL(proxy.url);
  const text = JSON.stringify(body);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /s/${key}${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  );
  let heard = "";
  for await (const chunk of socket) {
    heard += String(chunk);
    if (heard.includes(words)) break;
  }
  socket.destroy();
  assert.ok(heard.includes(words), heard);
}
