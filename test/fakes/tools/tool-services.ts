/** Services of tools in this process: the protocol's own SDK behind streams, and services with faults. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
import type { ServicesWithin } from "../../../proxy/index.ts";

/** One black pixel. */
export const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";

/** What each call did, in order: what the service has seen. */
export type Seen = { tool: string; args: unknown }[];

export function shopServer(seen: Seen): McpServer {
  const server = new McpServer({ name: "shop", version: "2.1" }, { instructions: "Ask for an order first." });
  const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
  server.registerTool("find_order", { description: "An order by its id", inputSchema: { id: z.string() } }, ({ id }) => {
    seen.push({ tool: "find_order", args: { id } });
    return text(`order ${id} is open`);
  });
  server.registerTool("cancel_order", { description: "Cancels an order", inputSchema: { id: z.string() } }, ({ id }) => {
    seen.push({ tool: "cancel_order", args: { id } });
    return text(`order ${id} is cancelled`);
  });
  server.registerTool("screen", { description: "A picture" }, () => {
    seen.push({ tool: "screen", args: {} });
    return { content: [{ type: "image", data: picture, mimeType: "image/png" }], structuredContent: { width: 1 } };
  });
  server.registerTool("fail", { description: "Fails" }, () => {
    seen.push({ tool: "fail", args: {} });
    return { ...text("out of paper"), isError: true };
  });
  server.registerTool("large", { description: "A text", inputSchema: { bytes: z.number() } }, ({ bytes }) => {
    seen.push({ tool: "large", args: { bytes } });
    return text("x".repeat(bytes));
  });
  server.registerTool("wait", { description: "Waits", inputSchema: { ms: z.number() } }, async ({ ms }) => {
    seen.push({ tool: "wait", args: { ms } });
    await sleep(ms);
    return text("waited");
  });
  return server;
}

/** The SDK's server as it stands in services of people: one of the protocol's sessions for each client. */
export function sdkService(make: () => McpServer): Server {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  return createServer(async (incoming, outgoing) => {
    const id = incoming.headers["mcp-session-id"];
    let transport = typeof id === "string" ? transports.get(id) : undefined;
    if (!transport) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (name) => void transports.set(name, made),
      });
      await make().connect(made);
      transport = made;
    }
    await transport.handleRequest(incoming, outgoing);
  });
}

/** Answers by hand: `handle` gets each message, and says what is written as its answer. */
export function rawService(handle: (message: RawMessage, outgoing: ServerResponse) => string | null | Promise<string | null>): Server {
  return createServer(async (incoming: IncomingMessage, outgoing) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const message = JSON.parse(Buffer.concat(pieces).toString()) as RawMessage;
    const said = await handle(message, outgoing);
    if (outgoing.destroyed || outgoing.headersSent) return;
    if (said === null) outgoing.writeHead(202).end();
    else outgoing.writeHead(200, { "content-type": "application/json" }).end(said);
  });
}

export type RawMessage = { id?: number; method: string; params?: { name?: string; arguments?: unknown } };

/** The usual answers, but for a call of a tool. `tools`: the text of a list. */
export function usualAnswer({ id, method }: RawMessage, tools: string): string | null {
  if (method === "initialize")
    return `{"jsonrpc":"2.0","id":${id},"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`;
  if (method === "tools/list") return `{"jsonrpc":"2.0","id":${id},"result":{"tools":${tools}}}`;
  if (method === "ping") return `{"jsonrpc":"2.0","id":${id},"result":{}}`;
  return null;
}

/** Streams to services in this process, by name. `commands` get the other end of their standard input and output. */
export function placeOf(servers: Record<string, Server>, commands: Record<string, (stream: Duplex) => void> = {}): ServicesWithin {
  return {
    async connect(service) {
      const [near, far] = duplexPair();
      const server = servers[service];
      if (!server) throw new Error(`nothing listens at ${service}`);
      server.emit("connection", far as Socket);
      return near;
    },
    async start(service) {
      const [near, far] = duplexPair();
      commands[service]?.(far);
      return near;
    },
  };
}
