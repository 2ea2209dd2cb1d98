/**
 * HTTP to an inference server: connections that live shorter than the server's own, answers read as they come, and
 * failures named by what the server can have seen of the request.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Agent } from "undici";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readJson, tryJson } from "../../base/schema/read-json.ts";
import { retryAfterSeconds } from "../../base/wire/retry-after.ts";
import { LostAnswer, refusal } from "./refusal.ts";
import { type SampledNothing, sampledNothing } from "./sampled-nothing.ts";
import { StreamedResponse } from "./streamed-response.ts";

/**
 * Idle connections are closed well before the server closes them: uvicorn (vLLM, SGLang) and llama-server do so after 5 s,
 * and a request that meets such a close may have been sampled. undici's own timer is late by up to a second, and it reads a
 * kept connection once more before it writes.
 */
const idleSocketMs = 2_000;
/** The length that is kept of an error body. */
const maxErrorBytes = 64 * 1024;
/** 128 k sampled tokens, each in a chunk of its own with its logprob, are about 50 MB; a server that sends five times that is none. */
const maxAnswerBytes = 256 * 1024 * 1024;

/** A question without side effects is asked once more where its connection went away. */
const maxTries = 2;

export type EngineClientOptions = { baseUrl: string; apiKey: string | null; sampledNothing?: SampledNothing };

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
  readonly #sampledNothing: SampledNothing;

  constructor(options: EngineClientOptions) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
    const { origin, pathname } = new URL(this.baseUrl);
    [this.#origin, this.#prefix] = [origin, pathname.replace(/\/$/, "")];
    this.#apiKey = options.apiKey;
    this.#sampledNothing = options.sampledNothing ?? sampledNothing;
  }

  /** A body of JSON. Throws `engine_unreachable`, and the server's refusal typed. */
  async json(method: Method, path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const { status, response } = await this.send(method, path, body, signal);
    if (status !== 200) throw this.refusal(status, await response.text(maxErrorBytes).catch(messageOf), response.headers);
    return readJson(await response.text());
  }

  /**
   * Sends a request without side effects and returns the answer of any status. It is sent once more where the connection
   * went away without a byte. Throws `engine_unreachable` or `engine_error` without an answer.
   */
  async send(method: Method, path: string, body: unknown, signal: AbortSignal, requestId: string | null = null): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#ask(method, path, body, signal, requestId);
      } catch (error) {
        if (!(error instanceof LostAnswer) || tries === maxTries) throw error;
      }
    }
  }

  /** A POST without a body; its status is the answer. Throws as `send`. */
  async command(path: string, signal: AbortSignal): Promise<{ status: number; text: string }> {
    const { status, response } = await this.send("POST", path, undefined, signal);
    return { status, text: await response.text() };
  }

  /**
   * Sends a request and reads the answer as a stream, once the server has accepted it. `body`: JSON, or its bytes. Throws
   * the server's refusal, `engine_unreachable` if the request cannot have left, or a LostAnswer. `proves`: decides what a refusal proves,
   * if this request differs from others.
   */
  async open(path: string, body: unknown, signal: AbortSignal, requestId: string, proves?: SampledNothing): Promise<StreamedResponse> {
    const { status, response } = await this.#ask("POST", path, body, signal, requestId);
    if (status !== 200) throw this.refusal(status, await response.text(maxErrorBytes).catch(messageOf), response.headers, proves);
    return response;
  }

  /** The server's own refusal, typed by its status and its words, with its word on when to come back. */
  refusal(status: number, body: string, headers: IncomingHttpHeaders = {}, proves = this.#sampledNothing): AlidadeError {
    const text = body.slice(0, maxErrorBytes);
    return refusal({
      baseUrl: this.baseUrl,
      status,
      errorText: errorTextOf(text),
      body: text,
      retryAfterSeconds: retryAfterSeconds(headers["retry-after"]),
      sampledNothing: proves(status, text),
    });
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

  /** Throws `engine_unreachable` where no byte of the request can have left, and a LostAnswer where one may have. */
  async #ask(method: Method, path: string, body: unknown, signal: AbortSignal, requestId: string | null): Promise<Answer> {
    const response = new StreamedResponse(signal);
    const headers = this.#headers(body !== undefined, requestId);
    const content = body === undefined || Buffer.isBuffer(body) ? (body ?? null) : JSON.stringify(body);
    this.#agent.dispatch({ origin: this.#origin, path: this.#prefix + path, method, headers, body: content }, response);
    const status = await response.status.catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw response.isSent ? new LostAnswer(this.baseUrl + path, messageOf(error), error) : this.#unreachable(path, error);
    });
    return { status, response };
  }

  #unreachable(path: string, error: unknown): AlidadeError {
    return new AlidadeError(
      "engine_unreachable",
      `cannot reach the engine at ${this.baseUrl}${path}: ${messageOf(error)}. Is it running, and is --engine its URL?`,
      { cause: error },
    );
  }

  #headers(hasBody: boolean, requestId: string | null): Record<string, string> {
    return {
      ...(hasBody && { "content-type": "application/json" }),
      ...(requestId && { "x-request-id": requestId }),
      ...(this.#apiKey && { authorization: `Bearer ${this.#apiKey}` }),
    };
  }
}

type Method = "GET" | "POST";
type Answer = { status: number; response: StreamedResponse };

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
