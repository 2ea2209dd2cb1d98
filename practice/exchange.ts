/** One HTTP request and its answer: the body under a limit, JSON or an event stream, and a signal for a client that left. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { encodeSse } from "../base/wire/sse.ts";
import { WireError } from "./wire-error.ts";

/** A context of a million tokens is about 4 MB of text; a larger body is no prompt. */
const maxBodyBytes = 32 * 1024 * 1024;

export class PracticeExchange {
  /** What ids of answers end with: the client's own `X-Request-Id`, or random. */
  readonly requestId: string;
  readonly signal: AbortSignal;
  body = "";
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
    const id = request.headers["x-request-id"];
    this.requestId = typeof id === "string" && /^[\w.-]{1,128}$/.test(id) ? id : randomBytes(8).toString("hex");
    const left = new AbortController();
    response.once("close", () => left.abort());
    this.signal = left.signal;
  }

  /** Reads the body into `body`. */
  async receive(): Promise<void> {
    // As in vLLM; it also keeps a web page from posting here without asking.
    if (!/^application\/(\S+\+)?json\b/.test(this.#request.headers["content-type"] ?? ""))
      throw new WireError(400, "Unsupported Media Type: Only 'application/json' is allowed");
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of this.#request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBodyBytes) throw new WireError(413, `The body is larger than ${maxBodyBytes} bytes.`);
      chunks.push(chunk);
    }
    this.body = Buffer.concat(chunks).toString();
  }

  json(status: number, body: unknown): void {
    this.text(status, "application/json", JSON.stringify(body));
  }

  text(status: number, type: string, body: string): void {
    // What is left of a body that was refused would be read as the next request.
    const ending = this.#request.complete ? {} : { connection: "close" };
    this.#response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body), ...ending }).end(body);
  }

  /** Sends each chunk as an event as soon as it is there, no faster than the client reads, and ends with `[DONE]`. */
  async stream(chunks: AsyncIterable<unknown>): Promise<void> {
    this.#response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
    for await (const chunk of chunks) await this.#send(JSON.stringify(chunk));
    await this.#send("[DONE]");
    this.#response.end();
  }

  /** Answers with the error, in the stream where that has begun. A client that left hears nothing. */
  async fail(error: unknown): Promise<void> {
    if (this.signal.aborted) return;
    const refusal = error instanceof WireError ? error : new WireError(500, error instanceof Error ? error.message : String(error));
    if (refusal !== error) process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
    if (!this.#response.headersSent) return this.json(refusal.status, refusal);
    await this.#send(JSON.stringify(refusal));
    await this.#send("[DONE]");
    this.#response.end();
  }

  async #send(data: string): Promise<void> {
    this.signal.throwIfAborted();
    if (!this.#response.write(encodeSse({ data }))) await once(this.#response, "drain", { signal: this.signal });
  }
}
