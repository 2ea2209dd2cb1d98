/** Speaks MCP's streamable HTTP with a service, over connections that the sandbox opens. */
import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import { Pool } from "undici";
import { messageOf } from "../../base/errors.ts";
import { SseDecoder } from "../../base/wire/sse.ts";
import { answerToService, readMessage } from "./mcp.ts";
import type { ServiceLink } from "./service-link.ts";
import { ToolFault, tooLarge } from "./tool-fault.ts";

/** A session may have 16 requests at the proxy at once by default. One more connection is for the ping. */
const mostConnections = 17;

/** Replies to a service's own requests that may wait at once. Further requests get no reply: memory holds what waits. */
const mostReplies = 16;

/** Closes an idle connection before the server does (uvicorn: after 5 s). A call sent while the server closes would be lost. */
const idleMs = 2_000;

/** Allows for progress and log events that a service sends before its answer. */
const besideBytes = 1024 * 1024;

/** Bounds what is read of an error answer's text. */
const mostErrorBytes = 2_000;

/** Closes a stream that stays open this long after the answer. */
const restMs = 1_000;

export type HttpPlace = { port: number; path: string; mostBytes: number; connect: (signal: AbortSignal) => Promise<Duplex> };

export class HttpLink implements ServiceLink {
  readonly #pool: Pool;
  readonly #closed = new AbortController();
  readonly #path: string;
  readonly #mostBytes: number;
  #replies = 0;
  #session: string | null = null;
  #version: string | null = null;

  constructor({ port, path, mostBytes, connect }: HttpPlace) {
    this.#path = path;
    this.#mostBytes = mostBytes;
    // Servers that check the `Host` header accept loopback.
    this.#pool = new Pool(`http://127.0.0.1:${port}`, {
      connect: (_, callback) =>
        void connect(this.#closed.signal).then(
          (socket) => callback(null, socket as Socket),
          (error: unknown) => callback(error instanceof Error ? error : new Error(messageOf(error)), null),
        ),
      connections: mostConnections,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  speaks(version: string): void {
    this.#version = version;
  }

  async ask(id: number, message: string, signal: AbortSignal): Promise<string> {
    const { status, headers, body } = await this.#post(message, signal);
    try {
      if (status !== 200) throw new ToolFault("invalid", `it answered with status ${status}${await beginningOf(body)}`);
      const session = headers["mcp-session-id"];
      if (typeof session === "string") this.#session = session;
      const type = String(headers["content-type"] ?? "");
      if (type.startsWith("text/event-stream")) return await this.#fromStream(id, body, signal);
      return await this.#whole(body);
    } catch (error) {
      if (error instanceof ToolFault) throw error;
      throw new ToolFault("died", `the connection broke off (${messageOf(error)})`, error);
    } finally {
      letGo(body);
    }
  }

  async tell(message: string, signal: AbortSignal): Promise<void> {
    const { status, body } = await this.#post(message, signal);
    letGo(body);
    if (status >= 400) throw new ToolFault("invalid", `it answered with status ${status}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new Error("the tools are closed"));
    await this.#pool.destroy();
  }

  async #post(message: string, signal: AbortSignal): Promise<{ status: number; headers: IncomingHttpHeaders; body: Readable }> {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(this.#session !== null && { "mcp-session-id": this.#session }),
      ...(this.#version !== null && { "mcp-protocol-version": this.#version }),
    };
    try {
      const answer = await this.#pool.request({ method: "POST", path: this.#path, headers, body: message, signal });
      return { status: answer.statusCode, headers: answer.headers, body: answer.body };
    } catch (error) {
      throw new ToolFault("died", `the connection broke off (${messageOf(error)})`, error);
    }
  }

  async #whole(body: Readable): Promise<string> {
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of body as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > this.#mostBytes + besideBytes) throw tooLarge(this.#mostBytes);
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString();
  }

  /** Reads events until the answer comes. Before it, the service may send requests to us. */
  async #fromStream(id: number, body: Readable, signal: AbortSignal): Promise<string> {
    const decoder = new SseDecoder({ maxEventBytes: this.#mostBytes + besideBytes });
    let answer: string | null = null;
    let size = 0;
    for await (const piece of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > this.#mostBytes + 2 * besideBytes) throw tooLarge(this.#mostBytes);
      decoder.feed(piece, (bytes, start, end) => {
        const text = bytes.toString("utf8", start, end);
        const read = readMessage(text);
        if (read === null || answer !== null) return;
        const reply = answerToService(read);
        if (reply !== null) void this.#reply(reply, signal);
        else if (read.id === String(id)) answer = text;
      });
      if (answer !== null) return answer;
    }
    throw new ToolFault("died", "its stream of events ended without an answer");
  }

  /** Never rejects. The service may need no reply, and its answer does not depend on one. */
  async #reply(message: string, signal: AbortSignal): Promise<void> {
    if (this.#replies === mostReplies) return;
    this.#replies++;
    await this.tell(message, signal).catch(() => undefined);
    this.#replies--;
  }
}

/** Keeps the connection for the next call if little or nothing follows the answer. Otherwise the connection is closed. */
function letGo(body: Readable & { dump?: (options: { limit: number; signal: AbortSignal }) => Promise<void> }): void {
  if (body.readableEnded || body.destroyed) return;
  body.dump?.({ limit: mostErrorBytes, signal: AbortSignal.timeout(restMs) }).catch(() => undefined);
}

async function beginningOf(body: Readable): Promise<string> {
  let text = "";
  for await (const piece of body as AsyncIterable<Buffer>) {
    text += piece.toString();
    if (text.length > mostErrorBytes) break;
  }
  return text === "" ? "" : `: ${text.slice(0, mostErrorBytes)}`;
}
