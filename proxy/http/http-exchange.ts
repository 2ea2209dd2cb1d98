/** An exchange that has its connection for itself. Knows how the connection ended. */
import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { type StreamEncoder, streamEncoder } from "../../base/wire/framing.ts";
import type { Dialect, Framing, Headers, HttpAnswer, SseFrame } from "../dialects/index.ts";
import type { Exchange } from "./exchange.ts";
import type { RequestBytes } from "./request-bytes.ts";

export class HttpExchange implements Exchange {
  readonly dialect: Dialect;
  readonly headers: Headers;
  readonly bytes: RequestBytes;
  body: unknown = undefined;
  readonly choice = null;
  readonly closed: Promise<void>;
  readonly signal: AbortSignal;
  readonly #response: ServerResponse;
  readonly #encoder: StreamEncoder;
  #isClosed = false;
  #handedOver = false;
  written = 0;
  /** The size of a complete answer in bytes, once it is being sent. */
  answerBytes = 0;

  constructor(dialect: Dialect, headers: Headers, bytes: RequestBytes, response: ServerResponse, framing: Framing = "sse") {
    this.dialect = dialect;
    this.bytes = bytes;
    this.#encoder = streamEncoder(framing);
    this.headers = headers;
    this.#response = response;
    const gone = new AbortController();
    this.signal = gone.signal;
    this.closed = new Promise((resolve) => {
      response.once("finish", () => {
        this.#handedOver = true;
      });
      const close = (): void => {
        this.#isClosed = true;
        if (!this.delivered) gone.abort();
        resolve();
      };
      response.once("close", close);
      // A client that left before this was made is not heard of again.
      if (response.destroyed || response.socket?.destroyed) close();
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isFull(): boolean {
    return this.#sink.writableNeedDrain;
  }

  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  get delivered(): boolean {
    return this.#handedOver || (this.#response.writableEnded && this.#response.writableLength === 0);
  }

  async send(answer: HttpAnswer): Promise<void> {
    if (this.#isClosed) return;
    const text = JSON.stringify(answer.body);
    this.answerBytes = Buffer.byteLength(text);
    this.#response.writeHead(answer.status, {
      "content-type": "application/json",
      "content-length": this.answerBytes,
      ...answer.headers,
    });
    this.#response.end(text);
    await this.closed;
  }

  /** 200 and nothing more. */
  async sendEmpty(): Promise<void> {
    if (this.#isClosed) return;
    this.#response.writeHead(200, { "content-length": 0 }).end();
    await this.closed;
  }

  openStream(): void {
    if (this.#isClosed || this.headersSent) return;
    this.#response.writeHead(200, {
      "content-type": this.#encoder.contentType,
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    this.#response.flushHeaders();
  }

  write(frames: SseFrame[]): void {
    // Behind the end there may still be a sign of life on its way.
    if (this.#isClosed || this.#response.writableEnded || frames.length === 0) return;
    this.written++;
    writeChunk(this.#response, this.#encoder.encode(frames));
  }

  onDrain(call: () => void): void {
    this.#sink.once("drain", call);
  }

  /** What fills up: an answer that waits behind an earlier one of its connection has no socket yet. */
  get #sink(): Writable {
    return this.#response.socket ?? this.#response;
  }

  async endStream(frames: SseFrame[]): Promise<void> {
    if (this.#isClosed) return;
    this.#response.end(this.#encoder.encode(frames) + this.#encoder.end());
    await this.closed;
  }
}

/**
 * A piece of a streamed answer as one chunk of HTTP, in one write. `response.write` makes four writes of it and joins them a tick later: where every token is a piece, that costs more
 * than all else that is done to a token. The headers must be out.
 */
export function writeChunk(response: ServerResponse, text: string): void {
  const { socket } = response;
  // HTTP/1.0 knows no chunks, and an answer without a socket waits behind an earlier one of its connection.
  if (response.chunkedEncoding && socket?.writable && text !== "") socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  else response.write(text);
}
