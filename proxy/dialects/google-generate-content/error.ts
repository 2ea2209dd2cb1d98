/** The error shape of Google's APIs. */
import type { AlidadeError } from "../../../base/errors.ts";
import { contextOverflow } from "../context-overflow.ts";
import type { HttpAnswer } from "../dialect.ts";
import { errorHeaders } from "../error-answer.ts";

/** A spent session answers 400: Gemini CLI stops at it at once, and repeats 429 and 5xx. */
export function googleError(error: AlidadeError): HttpAnswer {
  return { status: error.status, headers: errorHeaders(error), body: googleErrorBody(error) };
}

/** Inside a stream its clients know an error by this object and a code from 400 to 599. */
export function googleErrorBody(error: AlidadeError): Record<string, unknown> {
  const info = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: error.code.toUpperCase(),
    domain: "alidade",
    metadata: error.param === null ? {} : { field: error.param },
  };
  return { error: { code: error.status, message: messageOf(error), status: statusName(error.status), details: [info] } };
}

const names: Record<number, string> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  504: "DEADLINE_EXCEEDED",
};

function statusName(status: number): string {
  return names[status] ?? (status >= 500 ? "UNAVAILABLE" : "INVALID_ARGUMENT");
}

/** Google's wording, by which its clients know a full context. */
function messageOf(error: AlidadeError): string {
  if (error.code !== "context_length_exceeded") return error.message;
  const overflow = contextOverflow(error.message);
  return overflow
    ? `The input token count (${overflow.tokens}) exceeds the maximum number of tokens allowed (${overflow.maximum}).`
    : `The input token count exceeds the maximum number of tokens allowed: ${error.message}`;
}
