/** The error shape of the Messages API. */
import type { AlidadeError } from "../../../base/errors.ts";
import { contextOverflow } from "../context-overflow.ts";
import type { HttpAnswer } from "../dialect.ts";
import { errorHeaders, isFinal } from "../error-answer.ts";

/** A spent session answers 403: Claude Code stops at it at once, and repeats a 400 six times. */
export function anthropicError(error: AlidadeError): HttpAnswer {
  return { status: statusOf(error), headers: errorHeaders(error), body: anthropicErrorBody(error) };
}

export function anthropicErrorBody(error: AlidadeError): Record<string, unknown> {
  return { type: "error", error: { type: typeOf(statusOf(error)), message: messageOf(error) } };
}

function statusOf(error: AlidadeError): number {
  return isFinal(error) ? 403 : error.status;
}

const types: Record<number, string> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
};

function typeOf(status: number): string {
  return types[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
}

/** Clients compact when they read this wording. */
function messageOf(error: AlidadeError): string {
  if (error.code !== "context_length_exceeded" || /^prompt is too long/.test(error.message)) return error.message;
  const overflow = contextOverflow(error.message);
  return overflow ? `prompt is too long: ${overflow.tokens} tokens > ${overflow.maximum} maximum` : `prompt is too long: ${error.message}`;
}
