/**
 * What a model is asked through the proxy is what it would be asked without: the prompt that the real vLLM makes of a
 * harness's own request, token by token, under templates that circulate.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { engineNamed } from "../../engines/registry.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { type Served, served } from "../fakes/proxies/served.ts";
import { chatTemplates } from "../interop/templates/place.ts";
import { need } from "../needs.ts";
import { withVllm } from "./vllm-samples.ts";

const texts = (...said: string[]) => said.map((text) => ({ type: "text", text }));
const call = (id: string, args: string) => ({ id, type: "function", function: { name: "look", arguments: args } });
const called = { role: "assistant", content: "Looking.", tool_calls: [call("call00001", '{"depth": 1.0, "path":"é"}')] };
const parameters = '{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"number","minimum":0.0}}}';
const tools = `[{"type":"function","function":{"name":"look","description":"looks","parameters":${parameters}}},{"type":"function","function":{"name":"bare"}}]`;

/** Requests as harnesses write them. */
const requests: [title: string, messages: unknown[], tools?: string][] = [
  [
    "a system prompt",
    [
      { role: "system", content: "Be brief." },
      { role: "user", content: "go" },
    ],
  ],
  ["no system prompt", [{ role: "user", content: "go" }]],
  ["who speaks within a role", [{ role: "user", name: "bob", content: "go" }]],
  ["several texts a message", [{ role: "user", content: texts("one", "two ", "three") }]],
  [
    "several texts of a system prompt, and of an earlier turn",
    [
      { role: "system", content: texts("Be brief.", "Be kind.") },
      { role: "user", content: "go" },
      { role: "assistant", content: texts("gone", "and back") },
      { role: "user", content: texts("again") },
    ],
  ],
  [
    "tools whose schemas have fractions, and none",
    [
      { role: "system", content: "Look." },
      { role: "user", content: "go" },
    ],
    tools,
  ],
  [
    "a call, its result in several texts, and the next question",
    [
      { role: "user", content: "go" },
      called,
      { role: "tool", tool_call_id: "call00001", content: texts("a.txt", "b.txt") },
      { role: "user", content: "and?" },
    ],
    tools,
  ],
];

/** The server's own, one with a system prompt of its own, those that print lists of texts themselves, one that takes strings, one that prints names. */
const names = [
  null,
  "Qwen-Qwen2.5-7B-Instruct",
  "Qwen-Qwen3-0.6B",
  "GLM-4.6",
  "MiniMax-M2",
  "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
  "Kimi-K3",
];

test("the prompt of a request is the same through the proxy and without it", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "vllm")) || !(await need(t, "templates"))) return;
  await withVllm(t.signal, async (_engine, vllm) => {
    for (const name of names) {
      const template = name === null ? null : chatTemplates().find((one) => one.name === name)?.source;
      assert.notEqual(template, undefined, `there is no template ${name}`);
      await using server = await withTemplate(vllm.url, template ?? null);
      const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: null });
      await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test" });
      for (const [title, messages, offered] of requests) {
        const { session, key } = await proxy.openSession({ purpose: "eval" });
        const fields = JSON.stringify({ model: vllm.model, max_tokens: 1, messages }).slice(1, -1);
        const body = `{${fields}${offered ? `,"tools":${offered}` : ""}}`;
        const direct = await post(`${server.url}/v1/chat/completions`, `${body.slice(0, -1)},"return_token_ids":true}`);
        const ours = await post(`${proxy.url}/v1/chat/completions`, body, { authorization: `Bearer ${key}` });
        assert.deepEqual([direct.status, ours.status], [200, 200], `${name}: ${title}: ${ours.text}`);
        const asked = session.calls()[0];
        const wanted = (JSON.parse(direct.text) as { prompt_token_ids: number[] }).prompt_token_ids;
        assert.deepEqual(asked?.idText?.toIds().slice(0, asked.promptLength), wanted, `${name}: ${title}`);
      }
      await engine.close();
    }
  });
});

async function post(url: string, body: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
  return { status: answer.status, text: await answer.text() };
}

/** The server as one that was started with this template. */
async function withTemplate(url: string, template: string | null): Promise<Served> {
  const server = createServer(async (incoming, outgoing) => {
    const text = (await buffer(incoming)).toString();
    const body =
      template !== null && text.includes('"messages"') ? `${text.slice(0, -1)},"chat_template":${JSON.stringify(template)}}` : text;
    const answer = await fetch(`${url}${incoming.url}`, {
      method: incoming.method ?? "GET",
      headers: { "content-type": "application/json" },
      ...(body !== "" && { body }),
    });
    outgoing.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "application/json" });
    outgoing.end(Buffer.from(await answer.arrayBuffer()));
  });
  return served(server);
}
