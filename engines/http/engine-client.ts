/**
 * HTTP to an inference server: connections that live shorter than the server's own, answers read as they come, and
 * failures named by what the server can have seen of the request.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Agent, type Dispatcher, request as httpRequest } from "undici";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../errors.ts";
import { readJson, tryJson } from "../../schema/read-json.ts";
import { refusal } from "./refusal.ts";
import { retryAfterSeconds } from "./retry-after.ts";
import { StreamedResponse } from "./streamed-response.ts";

/** uvicorn closes an idle connection after 5 s; leaving it at 4 s means that we never send into a closed one. */
const idleSocketMs = 4_000;
/** The length that is kept of an error body. */
const maxErrorBytes = 64 * 1024;
/** 128 k sampled tokens, each in a chunk of its own with its logprob, are about 50 MB; a server that sends five times that is none. */
const maxAnswerBytes = 256 * 1024 * 1024;

/** Several connections may have been kept, and all of them closed by now. */
const maxTries = 4;

export type EngineClientOptions = { baseUrl: string; apiKey: string | null };

export class EngineClient {
  /** Without a trailing slash and without `/v1`. */
  readonly baseUrl: string;
  /** The same in two: a URL that is parsed for every call costs as much as its headers. */
  readonly #origin: string;
  readonly #prefix: string;
  readonly #apiKey: string | null;
  readonly #agent = new Agent({
    keepAliveTimeout: idleSocketMs,
    keepAliveMaxTimeout: idleSocketMs,
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: null,
    maxResponseSize: maxAnswerBytes,
  });
  /** Connections made so far: a request that failed without a new one was sent on a reused socket. */
  #connects = 0;

  constructor(options: EngineClientOptions) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
    const { origin, pathname } = new URL(this.baseUrl);
    [this.#origin, this.#prefix] = [origin, pathname.replace(/\/$/, "")];
    this.#apiKey = options.apiKey;
    this.#agent.on("connect", () => this.#connects++);
  }

  /** A body of JSON. Throws `engine_unreachable`, and the server's refusal typed. */
  async json(method: "GET" | "POST", path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const response = await this.send(method, path, body, signal);
    if (response.statusCode !== 200) throw this.refusal(response.statusCode, await response.body.text().catch(messageOf), response.headers);
    return readJson(await response.body.text());
  }

  /**
   * Sends a request without side effects and returns the answer of any status. It is repeated where a kept connection
   * closed at that moment. Throws `engine_unreachable` or `engine_error` without an answer.
   */
  async send(
    method: "GET" | "POST",
    path: string,
    body: unknown,
    signal: AbortSignal,
    requestId: string | null = null,
  ): Promise<Dispatcher.ResponseData> {
    for (let tries = 1; ; tries++) {
      const connects = this.#connects;
      try {
        return await httpRequest(this.baseUrl + path, {
          method,
          headers: this.#headers(body !== undefined, requestId),
          body: body === undefined ? null : JSON.stringify(body),
          signal,
          dispatcher: this.#agent,
        });
      } catch (error) {
        if (signal.aborted) throw error;
        const notSeen = this.#connects === connects;
        if (!notSeen || !wasClosed(error) || tries === maxTries) throw this.#noAnswer(path, error, notSeen);
      }
    }
  }

  /** A POST without a body; its status is the answer. Throws as `send`. */
  async command(path: string, signal: AbortSignal): Promise<{ status: number; text: string }> {
    const response = await this.send("POST", path, undefined, signal);
    return { status: response.statusCode, text: await response.body.text() };
  }

  /**
   * Sends a request and reads the answer as a stream, once the server has accepted it. `body`: JSON, or its bytes. Throws
   * the server's refusal.
   */
  async open(path: string, body: unknown, signal: AbortSignal, requestId: string): Promise<StreamedResponse> {
    const connects = this.#connects;
    const response = new StreamedResponse(signal);
    const headers = this.#headers(true, requestId);
    this.#agent.dispatch(
      {
        origin: this.#origin,
        path: this.#prefix + path,
        method: "POST",
        headers,
        body: Buffer.isBuffer(body) ? body : JSON.stringify(body),
      },
      response,
    );
    const status = await response.status.catch((error: unknown) => {
      throw signal.aborted ? error : this.#noAnswer(path, error, this.#connects === connects);
    });
    if (status !== 200) throw this.refusal(status, await response.text(maxErrorBytes).catch(messageOf), response.headers);
    return response;
  }

  /** The server's own refusal, typed by its status and its words, with its word on when to come back. */
  refusal(status: number, body: string, headers: IncomingHttpHeaders = {}): AlidadeError {
    const text = body.slice(0, maxErrorBytes);
    return refusal(this.baseUrl, status, errorTextOf(text), text, undefined, retryAfterSeconds(headers["retry-after"]));
  }

  /** Names what broke in the middle of an answer; an abort and what has a name already stay what they are. */
  brokenOff(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted || error instanceof AlidadeError) return error;
    return new AlidadeError("engine_error", `the engine at ${this.baseUrl} broke off in the middle of an answer: ${messageOf(error)}`, {
      cause: error,
    });
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #headers(hasBody: boolean, requestId: string | null): Record<string, string> {
    return {
      ...(hasBody && { "content-type": "application/json" }),
      ...(requestId && { "x-request-id": requestId }),
      ...(this.#apiKey && { authorization: `Bearer ${this.#apiKey}` }),
    };
  }

  /**
   * `notSeen`: the server has not seen the request, because no connection was made or the kept socket was already closed.
   * On a fresh connection it may have seen it.
   */
  #noAnswer(path: string, error: unknown, notSeen: boolean): AlidadeError {
    if (notSeen)
      return new AlidadeError(
        "engine_unreachable",
        `cannot reach the engine at ${this.baseUrl}${path}: ${messageOf(error)}. Is it running, and is --engine its URL?`,
        { cause: error },
      );
    return new AlidadeError(
      "engine_error",
      `the engine at ${this.baseUrl}${path} closed the connection without an answer: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/** A connection that was there has gone, as against one that was never made. */
function wasClosed(error: unknown): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return code === "UND_ERR_SOCKET" || ((code === "ECONNRESET" || code === "EPIPE") && syscall !== "connect");
}

/** The message of an error body: `{error: {message}}` (OpenAI's shape), `{message}` (SGLang's), `{detail}` (FastAPI's), or the text. */
function errorTextOf(text: string): string {
  const body = ErrorBody.safeParse(tryJson(text)).data;
  const { error, message, detail } = body ?? {};
  const found =
    (typeof error === "string" ? error : error?.message) ?? message ?? (detail === undefined ? undefined : JSON.stringify(detail));
  return found ?? text.slice(0, 500);
}

const ErrorBody = z.looseObject({
  error: z.union([z.string(), z.looseObject({ message: z.string() })]).optional(),
  message: z.string().optional(),
  detail: z.unknown().optional(),
});
