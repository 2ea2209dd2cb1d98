/** A server's refusal, typed: a full context is the policy's, a bad request the user's, the rest the engine's. */
import { AlidadeError } from "../../base/errors.ts";

/** How servers and vendors say that the prompt does not fit. */
const overflow =
  /context length|context window|context size|exceed_context_size|context_length_exceeded|max_model_len|max_seq_len|prompt is too long|token count .*exceeds/i;

type RefusedAnswer = {
  baseUrl: string;
  status: number;
  /** The server's own sentence. */
  errorText: string;
  /** All that it sent, for codes beside the sentence. Absent: the sentence is all. */
  body?: string;
  cause?: unknown;
  /** The wait that it asked for. */
  retryAfterSeconds?: number | null;
  /** Whether the answer proves that nothing was sampled. */
  sampledNothing: boolean;
};

export function refusal({ baseUrl, status, errorText, body = errorText, ...options }: RefusedAnswer): AlidadeError {
  if ((status === 400 || status === 413) && overflow.test(body))
    return new AlidadeError("context_length_exceeded", errorText, { ...options, status: 400 });
  const message = `the engine at ${baseUrl} answered ${status}: ${errorText}`;
  if (status === 401 || status === 403)
    return new AlidadeError("engine_error", `${message} (engine.api_key_env names the variable that holds its key)`, {
      ...options,
      status: 502,
    });
  if (status === 404 && /model/i.test(errorText)) return new AlidadeError("model_unknown", message, options);
  if (status === 400 || status === 413 || status === 422) return new AlidadeError("request_invalid", message, { ...options, status: 400 });
  // Anthropic's 529 is "overloaded", which is what 503 says elsewhere.
  const busy = status === 429 ? 429 : status === 503 || status === 529 ? 503 : 502;
  return new AlidadeError("engine_error", message, { ...options, status: busy });
}

/** The request may have left, and no byte of an answer came: what the server sampled for it is not known. */
export class LostAnswer extends AlidadeError {
  constructor(url: string, why: string, cause: unknown) {
    super("engine_error", `the engine at ${url} closed the connection without an answer: ${why}`, { cause });
  }
}
