/** An answer is a pure function of the record: a second proxy that has the log and nothing else writes the same bytes. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dialects } from "../../dialects/index.ts";
import { DiskStore } from "../../store/index.ts";
import { proxyAt } from "../fakes/proxy-at.ts";

type Asked = { path: string; body: Record<string, unknown> };

const parameters = { type: "object", properties: { command: { type: "string" } } };
const model = "scripted";

/** A request with a tool in each dialect. */
const requests: Record<string, (stream: boolean) => Asked> = {
  "openai-chat": (stream) => ({
    path: "/v1/chat/completions",
    body: {
      model,
      stream,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: "hi" }],
      tools: [{ type: "function", function: { name: "bash", parameters } }],
    },
  }),
  "openai-responses": (stream) => ({
    path: "/v1/responses",
    body: { model, stream, input: "hi", tools: [{ type: "function", name: "bash", parameters }] },
  }),
  "anthropic-messages": (stream) => ({
    path: "/v1/messages",
    body: {
      model,
      stream,
      max_tokens: 100,
      messages: [{ role: "user", content: "hi" }],
      tools: [{ name: "bash", input_schema: parameters }],
    },
  }),
  "google-generate-content": (stream) => ({
    path: `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: {
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
      tools: [{ functionDeclarations: [{ name: "bash", parametersJsonSchema: parameters }] }],
    },
  }),
  "openai-completions": (stream) => ({ path: "/v1/completions", body: { model, stream, prompt: "hi" } }),
};

const reply = {
  reasoning: "Grüße – two at once",
  text: 'Both.\n\u{1f600} "quoted"',
  tool_calls: [
    { name: "bash", arguments: '{"command":  "ls"}' },
    { name: "bash", arguments: "not json" },
  ],
};

async function ask(url: string, key: string, { path, body }: Asked): Promise<string> {
  const response = await fetch(`${url}/s/${key}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return text;
}

test("every dialect has a request here", () => assert.deepEqual(Object.keys(requests).sort(), dialects.map(({ name }) => name).sort()));

for (const [name, requestOf] of Object.entries(requests))
  for (const stream of [false, true])
    test(`${name}: a ${stream ? "streamed" : "whole"} answer comes from the log byte for byte`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), "alidade-answer-"));
      t.after(() => rm(folder, { recursive: true, force: true }));
      const request = requestOf(stream);
      const given = await (async () => {
        await using at = await proxyAt(() => (name === "openai-completions" ? { text: reply.text } : reply), {
          store: new DiskStore(folder),
        });
        const { key, sessionId } = await at.open({ relay: "settled" });
        return { key, sessionId, text: await ask(at.proxy.url, key, request) };
      })();
      const path = join(folder, `${given.sessionId}.jsonl`);
      const lines = (await readFile(path, "utf8")).split("\n");
      await writeFile(path, lines.filter((line) => !line.includes('"type":"answered"')).join("\n"));
      await using again = await proxyAt(() => ({ text: "another sample" }), { store: new DiskStore(folder), rebuild: true });
      assert.equal(await ask(again.proxy.url, given.key, request), given.text);
      assert.equal(again.engine.requests.length, 0);
    });
