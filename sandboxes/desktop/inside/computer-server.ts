/**
 * The server of the tool `computer`: it speaks MCP over standard input and output, a message a line, and acts on the screen
 * beside it. Actions are done one after the other, as on any screen.
 */
import { createInterface } from "node:readline";
import { tryJson } from "../../../base/schema/read-json.ts";
import { act, computerTool, type Desktop } from "./computer-actions.ts";
import { Frames, pngOf } from "./frames.ts";
import { Keyboard } from "./keyboard.ts";
import { frameFile, xSocket } from "./places.ts";
import { XClient } from "./x-client.ts";

const protocolVersion = "2025-06-18";
const methodUnknown = -32601;

const client = await XClient.connect(xSocket);
const frames = await Frames.open(frameFile);
const desktop: Desktop = { client, keyboard: await Keyboard.open(client), width: frames.width, height: frames.height };

let last: Promise<void> = Promise.resolve();
for await (const line of createInterface({ input: process.stdin })) {
  const message = tryJson(line) as { id?: unknown; method?: unknown; params?: unknown } | undefined;
  if (message?.id === undefined || typeof message.method !== "string") continue;
  const { id, method, params } = message;
  // A ping is answered while an action runs: it asks whether this server lives.
  if (method === "tools/call") last = last.then(async () => answer(id, { result: await call(params) }));
  else answer(id, result(method));
}
process.exit(0);

function result(method: string): object {
  if (method === "initialize")
    return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "alidade-computer", version: "1" } } };
  if (method === "ping") return { result: {} };
  if (method === "tools/list") return { result: { tools: [computerTool(desktop)] } };
  return { error: { code: methodUnknown, message: `${method.slice(0, 100)} is not supported: this server has tools only` } };
}

async function call(params: unknown): Promise<object> {
  try {
    const { name, arguments: args } = (params ?? {}) as { name?: unknown; arguments?: unknown };
    if (name !== "computer") throw new Error("there is one tool, which is called computer");
    await act(desktop, (args ?? {}) as Record<string, unknown>);
    const data = (await pngOf(await frames.settled())).toString("base64");
    return { content: [{ type: "image", data, mimeType: "image/png" }] };
  } catch (error) {
    // Without a screen there is nothing to act on: the relay learns it by our end.
    if (client.hasEnded) process.exit(1);
    return { content: [{ type: "text", text: `${error instanceof Error ? error.message : String(error)}.` }], isError: true };
  }
}

function answer(id: unknown, body: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...body })}\n`);
}
