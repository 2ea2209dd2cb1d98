/**
 * What the hosted engines share. They give no token ids, so their tokens are never trained as a policy's. They serve as
 * teachers, whose text is recorded (distillation), or as opponents. Their SDKs speak the wire; Alidade counts the retries.
 */
import { Agent, fetch as undiciFetch } from "undici";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import type { Sampling } from "../../base/schema/message.ts";
import { retryAfterSeconds } from "../../base/wire/retry-after.ts";
import type { EngineFacts, SampleRequest } from "../engine.ts";
import { LostAnswer, refusal } from "../http/refusal.ts";
import { sampledNothing } from "../http/sampled-nothing.ts";

/** SDKs end a request after ten minutes; ours end by their signal alone. The largest delay that a timer takes. */
export const noTimeoutMs = 2_147_483_647;

/**
 * The connections of one hosted engine. Node's own fetch gives up after five minutes without a byte, and a model may think
 * for longer.
 */
export class HostedConnections {
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connections: null });

  /** For the SDKs, which take any fetch; the two types differ in names only. */
  readonly fetch = ((input: string, init: object) =>
    undiciFetch(input, { ...init, dispatcher: this.#agent })) as unknown as typeof globalThis.fetch;

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** The request was not sent: there was no connection. */
const notSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

export function hostedFacts(engine: string, baseUrl: string, models: string[], roles: Record<string, string>): EngineFacts {
  return {
    engine,
    base_url: baseUrl,
    version: null,
    models,
    max_model_len: null,
    token_ids: false,
    logprobs: false,
    logprob_semantics: null,
    token_in: false,
    token_in_missing: "a hosted API takes messages only",
    role_mapping: roles,
    missing: `the API at ${baseUrl} gives no token ids (engine.kind ${engine}): its text is recorded for distillation or evaluation, and is never trained on as a policy. To train, serve the model yourself with vLLM or SGLang`,
  };
}

/** Sampling on another prompt than the one that was given would be worse than failing. Throws `request_invalid`. */
export function refusePromptIds(engine: string, request: SampleRequest): void {
  if (request.prompt_ids)
    throw new AlidadeError("request_invalid", `${engine} takes messages only, and no prompt ids`, { param: "prompt_ids" });
}

/** What an SDK threw, as ours. `began`: the answer had begun. Throws nothing; an abort stays what the signal says. */
export function hostedFailure(error: unknown, baseUrl: string, signal: AbortSignal, began = false): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof AlidadeError) return error;
  const status = statusOf(error);
  const errorText = messageOf(error).slice(0, 2_000);
  if (began)
    return new AlidadeError("engine_error", `the engine at ${baseUrl} broke off in the middle of an answer: ${errorText}`, {
      cause: error,
    });
  if (status !== null)
    return refusal({
      baseUrl,
      status,
      errorText,
      body: `${errorText} ${codeOf(error) ?? ""}`,
      cause: error,
      retryAfterSeconds: comeBackAfter(error),
      sampledNothing: sampledNothing(status, errorText),
    });
  const reason = innermostCode(error);
  if (reason !== null && notSent.has(reason))
    return new AlidadeError("engine_unreachable", `cannot reach the engine at ${baseUrl}: ${reason}. Is engine.url right?`, {
      cause: error,
    });
  return new LostAnswer(baseUrl, reason ?? errorText, error);
}

/**
 * The parameters that an API takes, under its own names; undefined ones are left out. What it does not take is left out
 * too where it says nothing (a neutral value, a seed, a hint), and refused where it changes what is sampled: throws
 * `request_invalid` naming it.
 */
export function takeSampling(engine: string, sampling: Sampling, names: Record<string, string>): Record<string, unknown> {
  const taken: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(sampling)) {
    if (value === undefined || value === null) continue;
    const own = Object.hasOwn(names, name) ? names[name] : undefined;
    if (own !== undefined) taken[own] = value;
    else if (!asksForNothing(name, value))
      throw new AlidadeError(
        "request_invalid",
        `${engine} takes no ${name} (${JSON.stringify(value).slice(0, 100)}): leave it out, or ask another engine`,
        {
          param: name,
        },
      );
  }
  return taken;
}

/** Values that ask for nothing; null: any value does. */
const neutral = new Map<string, unknown[] | null>([
  ["temperature", [1]],
  ["top_p", [1]],
  ["top_k", [-1, 0]],
  ["min_p", [0]],
  ["presence_penalty", [0]],
  ["frequency_penalty", [0]],
  ["repetition_penalty", [1]],
  ["seed", null],
  ["reasoning_effort", null],
  ["parallel_tool_calls", null],
]);

function asksForNothing(name: string, value: unknown): boolean {
  const values = neutral.get(name);
  return values === null || values?.includes(value) === true;
}

function statusOf(error: unknown): number | null {
  const status = error !== null && typeof error === "object" && "status" in error ? error.status : null;
  return typeof status === "number" ? status : null;
}

/** From the headers of OpenAI's and Anthropic's errors; Google's says it in the body, which is the message. */
function comeBackAfter(error: unknown): number | null {
  if (!(error instanceof Error)) return null;
  // This is undici's own class, not the global one.
  const headers = "headers" in error ? (error.headers as Partial<Headers> | undefined) : undefined;
  if (typeof headers?.get === "function") return retryAfterSeconds(headers.get("retry-after"));
  return retryAfterSeconds(/"retryDelay":\s*"([\d.]+)s"/.exec(error.message)?.[1]);
}

function codeOf(error: unknown): string | null {
  const code = error !== null && typeof error === "object" && "code" in error ? error.code : null;
  return typeof code === "string" ? code : null;
}

/** SDKs wrap the socket's error two or three levels deep. */
function innermostCode(error: unknown): string | null {
  let code: string | null = null;
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    code = codeOf(at) ?? code;
    if (at instanceof AggregateError) code = codeOf(at.errors[0]) ?? code;
  }
  return code;
}
