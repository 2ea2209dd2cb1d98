/** The error shape that OpenAI's APIs share. */
import type { AlidadeError, ErrorCode } from "../../../base/errors.ts";
import type { HttpAnswer } from "../dialect.ts";
import { errorHeaders } from "../error-answer.ts";

/** The codes that clients know by OpenAI's name; ours go out as they are. */
const codes: Partial<Record<ErrorCode, string>> = { model_unknown: "model_not_found", unauthorized: "invalid_api_key" };

/** A spent session answers 400: harnesses stop at it, and retry 401, 403, 429 and 5xx. */
export function openaiError(error: AlidadeError): HttpAnswer {
  return { status: error.status, headers: errorHeaders(error), body: { error: openaiErrorBody(error) } };
}

export function openaiErrorBody(error: AlidadeError): { message: string; type: string; param: string | null; code: string } {
  return { message: error.message, type: typeOf(error.status), param: error.param, code: codeOf(error) };
}

/** Clients that keep no history know by this code that they have to send the whole conversation again. */
function codeOf(error: AlidadeError): string {
  if (error.code === "not_found" && error.param === "previous_response_id") return "previous_response_not_found";
  return codes[error.code] ?? error.code;
}

function typeOf(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}
