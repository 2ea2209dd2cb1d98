/**
 * An HTTP server that speaks the four dialects of the real harnesses just well enough to lead one through a script:
 * request n of a run gets turn n. It keeps what it was asked, so that a test can look at what a harness really sent.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";

export type ScriptedTurn =
  | { text?: string; tools?: { name: string; arguments: Record<string, unknown> }[] }
  /** Answered with this status, as often as it is asked for. */
  | { status: number };

export type SeenRequest = { path: string; headers: Record<string, string | undefined>; body: Record<string, unknown> };

export interface ScriptedApi extends AsyncDisposable {
  /** Without a trailing slash and without `/v1`. */
  readonly url: string;
  readonly requests: SeenRequest[];
  /** Serves a connection that came another way, such as through a sandbox's door. */
  accept(socket: Duplex): void;
}

/** Past the end of the script the last turn repeats. */
export async function scriptedHarnessApi(script: readonly ScriptedTurn[]): Promise<ScriptedApi> {
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    void answer(request, response, script, requests);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    accept: (socket) => void server.emit("connection", socket),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, script: readonly ScriptedTurn[], requests: SeenRequest[]) {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const path = (request.url ?? "").split("?")[0] ?? "";
  const write = Object.entries(writers).find(([suffix]) => path.endsWith(suffix))?.[1];
  if (request.method !== "POST" || write === undefined) {
    response.writeHead(404).end("{}");
    return;
  }
  const model = /\/models\/(.*):[^:]*$/.exec(decodeURIComponent(path))?.[1];
  // Google's address names the model; a test looks for it where the others have it.
  const body = { ...(JSON.parse(Buffer.concat(chunks).toString()) as object), ...(model !== undefined && { model }) };
  requests.push({ path, headers: request.headers as SeenRequest["headers"], body });
  const turn = script[Math.min(requests.length, script.length) - 1] ?? {};
  if ("status" in turn) {
    const message = `scripted ${turn.status}`;
    response.writeHead(turn.status, { "content-type": "application/json" });
    const code = path.includes("/models/") ? turn.status : "scripted";
    response.end(JSON.stringify({ type: "error", error: { type: "api_error", message, code } }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  write(turn, requests.length, (data, event) => response.write(`${event ? `event: ${event}\n` : ""}data: ${data}\n\n`));
  response.end();
}

type Turn = Exclude<ScriptedTurn, { status: number }>;
type Write = (data: string, event?: string) => void;

const writers: Record<string, (turn: Turn, index: number, write: Write) => void> = {
  "/chat/completions": writeChat,
  "/responses": writeResponses,
  "/messages": writeMessages,
  ":streamGenerateContent": writeGenerateContent,
};

function writeChat(turn: Turn, index: number, write: Write) {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    write(
      JSON.stringify({
        id: `chatcmpl-${index}`,
        object: "chat.completion.chunk",
        created: 0,
        model: "scripted",
        choices: [{ index: 0, delta, finish_reason }],
      }),
    );
  chunk({ role: "assistant", content: turn.text ?? null });
  turn.tools?.forEach((tool, at) => {
    const call = { name: tool.name, arguments: JSON.stringify(tool.arguments) };
    chunk({ tool_calls: [{ index: at, id: `call${index}x${at}`, type: "function", function: call }] });
  });
  chunk({}, turn.tools?.length ? "tool_calls" : "stop");
  write("[DONE]");
}

function writeResponses(turn: Turn, index: number, write: Write) {
  const id = `resp_${index}`;
  const event = (type: string, fields: object) => write(JSON.stringify({ type, ...fields }), type);
  const items: object[] = [];
  if (turn.text !== undefined) {
    const content = [{ type: "output_text", text: turn.text, annotations: [] }];
    items.push({ type: "message", id: `msg_${index}`, role: "assistant", status: "completed", content });
  }
  turn.tools?.forEach((tool, at) => {
    const call = { call_id: `call${index}x${at}`, name: tool.name, arguments: JSON.stringify(tool.arguments) };
    items.push({ type: "function_call", id: `fc_${index}_${at}`, status: "completed", ...call });
  });
  event("response.created", { response: { id, status: "in_progress", output: [] } });
  items.forEach((item, output_index) => {
    event("response.output_item.added", { output_index, item });
    event("response.output_item.done", { output_index, item });
  });
  const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
  event("response.completed", { response: { id, status: "completed", output: items, usage } });
}

function writeMessages(turn: Turn, index: number, write: Write) {
  const event = (type: string, fields: object) => write(JSON.stringify({ type, ...fields }), type);
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: `msg_${index}`, type: "message", role: "assistant", model: "scripted", content: [], stop_reason: null, usage };
  event("message_start", { message });
  let at = 0;
  const block = (content_block: object, delta: object) => {
    event("content_block_start", { index: at, content_block });
    event("content_block_delta", { index: at, delta });
    event("content_block_stop", { index: at });
    at += 1;
  };
  if (turn.text !== undefined) block({ type: "text", text: "" }, { type: "text_delta", text: turn.text });
  turn.tools?.forEach((tool, call) => {
    const partial_json = JSON.stringify(tool.arguments);
    block({ type: "tool_use", id: `toolu${index}x${call}`, name: tool.name, input: {} }, { type: "input_json_delta", partial_json });
  });
  event("message_delta", { delta: { stop_reason: turn.tools?.length ? "tool_use" : "end_turn", stop_sequence: null }, usage });
  event("message_stop", {});
}

function writeGenerateContent(turn: Turn, index: number, write: Write) {
  const piece = (parts: object[], more: object = {}, whole: object = {}) =>
    write(JSON.stringify({ candidates: [{ content: { role: "model", parts }, index: 0, ...more }], modelVersion: "scripted", ...whole }));
  if (turn.text !== undefined) piece([{ text: turn.text }]);
  turn.tools?.forEach((tool, at) => {
    piece([{ functionCall: { id: `call${index}x${at}`, name: tool.name, args: tool.arguments } }]);
  });
  piece([], { finishReason: "STOP" }, { usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } });
}
