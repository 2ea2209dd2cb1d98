/** One request to a service, as its client and the verbs that look at one send it. */
import { Agent, fetch, type Response } from "undici";
import { AlidadeError, type ErrorCode, errorCodes, messageOf } from "../../base/errors.ts";
import { Deadline } from "../../base/host/deadline.ts";
import { readJson } from "../../base/schema/read-json.ts";

/** Where it listens, a token of it, and the certificates that are trusted (PEM; null: those that Node trusts). */
export type ServiceAddress = { url: string; token: string; ca: string | null };

export type ServiceQuestion = {
  /** GET where left out. */
  method?: "GET" | "PUT" | "POST" | "DELETE";
  path: string;
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  /** The body as NDJSON. */
  lines?: readonly unknown[];
  /** Seconds that the service itself may take, beside those of an answer. */
  seconds?: number;
};

/** Who asks a service: `ask` gives the answer's JSON, `lines` its lines. */
export type ServiceAsker = {
  ask<Answer>(question: ServiceQuestion, signal?: AbortSignal): Promise<Answer>;
  lines<Line>(question: ServiceQuestion, signal?: AbortSignal): AsyncGenerator<Line>;
};

/** Beside the time that it was given, a service begins its answer within this one, or is not well. */
const answerMs = 60_000;
/** Between two pieces of a body: a line may be a group of long trajectories that are read out of a bucket. */
const silentMs = 300_000;

/** Connections to a service. The time until the headers is each question's own. */
export function connectionsTo({ ca }: Pick<ServiceAddress, "ca">): Agent {
  return new Agent({ headersTimeout: 0, bodyTimeout: silentMs, ...(ca !== null && { connect: { ca } }) });
}

/**
 * What `read` makes of its answer. Throws what the service refuses, with its code, status and field; with a status of 502 or more
 * where none answers, it cannot answer now, or its answer breaks off while `read` reads it; and `config_invalid` for a certificate
 * that is not trusted.
 */
export async function ask<Answer>(
  address: ServiceAddress,
  question: ServiceQuestion,
  agent: Agent,
  read: (answer: Response) => Promise<Answer>,
  signal?: AbortSignal,
): Promise<Answer> {
  const what = address.url + question.path;
  let answer: Response | null = null;
  try {
    answer = await begun(address, question, agent, signal);
    if (answer.ok || isFaultyHealth(question, answer)) return await read(answer);
    throw refusalOf(what, answer.status, await answer.text());
  } catch (error) {
    if (error instanceof AlidadeError) throw error;
    signal?.throwIfAborted();
    const cause = (error as { cause?: unknown }).cause ?? error;
    throw answer === null ? unreachable(address.url, cause) : brokenOff(what, cause);
  }
}

/** The answer's headers. Its body takes as long as its reader: a trainer trains between two lines. */
async function begun({ url, token }: ServiceAddress, question: ServiceQuestion, agent: Agent, signal?: AbortSignal): Promise<Response> {
  const { method = "GET", path, query = {}, body, lines, seconds = 0 } = question;
  const asked = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)] as [string, string]])),
  );
  const text = lines ? lines.map((line) => `${JSON.stringify(line)}\n`).join("") : body === undefined ? null : JSON.stringify(body);
  using late = new Deadline(answerMs + seconds * 1000);
  return await fetch(`${url}${path}${asked.size === 0 ? "" : `?${asked}`}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": lines ? "application/x-ndjson" : "application/json" },
    ...(text !== null && { body: text }),
    dispatcher: agent,
    signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
  });
}

/** A service whose ledger is away says so there, with its reasons. A proxy in front of it says 503 in HTML. */
function isFaultyHealth({ path }: ServiceQuestion, { status, headers }: Response): boolean {
  return path === "/health" && status === 503 && /^application\/json\b/.test(headers.get("content-type") ?? "");
}

/** In the service's own words, where it has said any. */
function refusalOf(what: string, status: number, text: string): AlidadeError {
  const { error } = (text.startsWith("{") ? readJson(text) : {}) as { error?: { code?: unknown; message?: unknown; param?: unknown } };
  const code = typeof error?.code === "string" && Object.hasOwn(errorCodes, error.code) ? (error.code as ErrorCode) : "request_invalid";
  const param = typeof error?.param === "string" ? error.param : null;
  const said = typeof error?.message === "string" ? error.message : text.slice(0, 300);
  return new AlidadeError(status === 401 ? "unauthorized" : code, `${what} answers ${status}: ${said}`, { status, param });
}

function unreachable(url: string, cause: unknown): AlidadeError {
  if (isDistrust(cause))
    return new AlidadeError("config_invalid", `the certificate of ${url} is not trusted: ${reasonOf(cause)}; name its CA's file (--ca)`, {
      param: "ca",
    });
  return new AlidadeError("not_found", `no service answers at ${url}: ${messageOf(cause)}`, { param: "url", status: 503 });
}

function brokenOff(what: string, cause: unknown): AlidadeError {
  return new AlidadeError("not_found", `the answer of ${what} broke off: ${messageOf(cause)}`, { param: "url", status: 503 });
}

/** Without Node's advice on its own flags. */
const reasonOf = (cause: unknown): string => messageOf(cause).replace(/;.*/s, "");

/** OpenSSL's and Node's names of what is wrong with a certificate: waiting does not mend it. */
function isDistrust(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && /CERT|^UNABLE_TO_/.test(String(cause.code));
}
