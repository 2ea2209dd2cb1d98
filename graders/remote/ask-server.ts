/**
 * One question to a grader's server, by POST: bounded in time and size, without redirects, and asked again where that may
 * help. A failure says whose it is. A server that cannot be asked, or has no time, says nothing about the work
 * (`grader_unreachable`, `grader_timeout`). An address or a key that the server refuses is the user's mistake. Anything else
 * may also be what this work does to the server (`grader_error`): graders/grade.ts then asks about the task's own files.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, type ErrorCode, messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { retryAfterSeconds } from "../../base/wire/retry-after.ts";
import { hideSecrets } from "../../base/wire/secrets.ts";

export type ServerQuestion = {
  url: string;
  /** Sent as a bearer token; null: the server wants none. */
  key: string | null;
  /** JSON. */
  body: string;
  timeout_seconds: number;
  /** How often it is asked at most. */
  tries: number;
};

export type ServerAnswer = { value: unknown; tries: number; question_sha256: string };

/** Throws what became of the last try, and the signal's reason. */
export async function askServer(question: ServerQuestion, signal: AbortSignal): Promise<ServerAnswer> {
  const question_sha256 = createHash("sha256").update(question.body).digest("hex");
  for (let nth = 1; ; nth++) {
    const reply = await askOnce(question, question_sha256, signal);
    if ("value" in reply) return { value: reply.value, tries: nth, question_sha256 };
    if (!reply.mayPass || nth === question.tries) throw new AlidadeError(reply.code, `${named(question.url, nth)} ${reply.says}`);
    await sleep(pauseMs(nth, reply.after_seconds), undefined, { signal });
  }
}

/** `mayPass`: another try may have another end. */
type Failure = { code: ErrorCode; says: string; mayPass: boolean; after_seconds: number | null };
type Reply = { value: unknown } | Failure;

/** Without its query, which may hold a secret. */
function named(url: string, tries: number): string {
  const { origin, pathname } = new URL(url);
  return `the grader's server ${origin}${pathname} (${tries} ${tries === 1 ? "try" : "tries"})`;
}

const firstPauseMs = 500;
/** A server that wants more time than this is away. */
const longestPauseMs = 30_000;

function pauseMs(nth: number, after_seconds: number | null): number {
  return Math.min(after_seconds === null ? firstPauseMs * 2 ** (nth - 1) : after_seconds * 1_000, longestPauseMs);
}

async function askOnce({ url, key, body, timeout_seconds }: ServerQuestion, id: string, signal: AbortSignal): Promise<Reply> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(timeout_seconds * 1_000)]);
  const headers = {
    "content-type": "application/json",
    accept: "application/json",
    // The same for each try of one question.
    "idempotency-key": id,
    ...(key !== null && { authorization: `Bearer ${key}` }),
  };
  try {
    const response = await fetch(url, { method: "POST", body, headers, redirect: "manual", signal: within });
    const text = await boundedText(response, mostAnswerBytes(body));
    return response.ok ? { value: readJson(text) } : refusal(response, text);
  } catch (error) {
    signal.throwIfAborted();
    if (within.aborted) return failure("grader_timeout", `does not answer within ${timeout_seconds} seconds`, true);
    return brokenOff(error);
  }
}

/** A reward, its components and a reason. */
const mostOwnBytes = 1024 * 1024;

/** NeMo Gym's servers send the whole question back beside the reward, perhaps with each character as an escape. */
function mostAnswerBytes(body: string): number {
  return mostOwnBytes + 6 * Buffer.byteLength(body);
}

async function boundedText(response: Response, mostBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    // Leaving the loop cancels the body.
    if (size > mostBytes) throw new RangeError(`answers more than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The server has no room now. */
const busy = new Set([429, 503]);
/** A place that does not take such questions. */
const wrongPlace = new Set([404, 405, 410]);

function refusal(response: Response, text: string): Failure {
  const { status, headers } = response;
  const says = `answers ${status}: ${shown(text)}`;
  if (status >= 300 && status < 400) {
    const place = shown(headers.get("location") ?? "another address");
    return failure("task_invalid", `leads to ${place}, and no redirect is followed: name that address in grader.url`, false);
  }
  if (status === 401 || status === 403)
    return failure("config_invalid", `${says}; grader_servers names the variable with the server's key (api_key_env)`, false);
  if (wrongPlace.has(status)) return failure("task_invalid", `${says}; mend grader.url`, false);
  const after = retryAfterSeconds(headers.get("retry-after"));
  return {
    ...failure(busy.has(status) ? "grader_unreachable" : "grader_error", says, busy.has(status) || status >= 500),
    after_seconds: after,
  };
}

/** How a connection ends that was there. */
const cutOff = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

function brokenOff(error: unknown): Failure {
  if (error instanceof RangeError) return failure("grader_error", error.message, false);
  if (error instanceof SyntaxError) return failure("grader_error", `answers no JSON: ${shown(messageOf(error))}`, false);
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const isCut = cutOff.has(String(Object(cause).code));
  const what = isCut ? "broke the connection off" : "cannot be reached";
  return failure(isCut ? "grader_error" : "grader_unreachable", `${what}: ${shown(messageOf(cause))}`, true);
}

function failure(code: ErrorCode, says: string, mayPass: boolean): Failure {
  return { code, says, mayPass, after_seconds: null };
}

/** For a person; a record must stay readable. */
const longestShown = 500;

/** A server's words, which may repeat a key. */
export function shown(text: string): string {
  return hideSecrets(text).slice(0, longestShown);
}
