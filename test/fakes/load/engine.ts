/**
 * An engine that costs next to nothing, in a process of its own: vLLM's wire with the same short turn for every prompt,
 * 20 ms after it was asked, as soon as any real engine answers. A prompt that no model has room for is refused unread.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { answerParent } from "../../../bench/child.ts";

const answerMs = 20;
const contextBytes = 1024 * 1024;

const server = createServer((incoming, outgoing) => void serve(incoming, outgoing).catch(() => outgoing.destroy()));
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1");
answerParent({ url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}` });

async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  if (incoming.url === "/v1/models") return json(outgoing, 200, { data: [{ id: "model", max_model_len: 131_072 }] });
  if (incoming.url !== "/v1/chat/completions") return json(outgoing, 404, { error: { message: `no route ${incoming.url}` } });
  const body = await bodyOf(incoming);
  if (body === null) return json(outgoing, 400, { error: { message: "This model's maximum context length is 131072 tokens.", code: 400 } });
  if (!body.includes('"stream":true')) return json(outgoing, 200, probeAnswer);
  await sleep(answerMs);
  outgoing.writeHead(200, { "content-type": "text/event-stream" }).end(turn);
}

/** Null for what is too long: it is read and let go. */
async function bodyOf(incoming: IncomingMessage): Promise<string | null> {
  let size = 0;
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= contextBytes) chunks.push(chunk);
  }
  return size > contextBytes ? null : Buffer.concat(chunks).toString("latin1");
}

function json(outgoing: ServerResponse, status: number, body: unknown): void {
  outgoing.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const logprobs = { content: [{ token: "ok", logprob: -0.5, top_logprobs: [{ token: "ok", logprob: -0.5 }] }] };
const probeAnswer = {
  prompt_token_ids: [1],
  choices: [{ message: { role: "assistant", content: "x" }, finish_reason: "length", token_ids: [2], logprobs }],
};
const turn = [
  { model: "model", prompt_token_ids: [1, 2, 3], choices: [{ index: 0, delta: { role: "assistant", content: "" } }] },
  { model: "model", choices: [{ index: 0, delta: { content: "ok" }, logprobs, token_ids: [4] }] },
  { model: "model", choices: [{ index: 0, delta: {}, finish_reason: "stop", stop_reason: null }] },
  { model: "model", choices: [], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } },
]
  .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  .join("")
  .concat("data: [DONE]\n\n");
