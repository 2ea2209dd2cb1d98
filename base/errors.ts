/**
 * Every failure that crosses a boundary of Alidade carries a code from this list. A code is stable: records keep it,
 * `--json` prints it, and tests match on it. The message is a sentence with the value in it that says what to do next.
 *
 * `owner` answers the question that decides what happens to a rollout: a failure of the `policy` is a result and is
 * graded, a failure of the `infrastructure` is retried and its reward is null, a mistake of the `user` stops the run.
 */
export const errorCodes = {
  config_invalid: "user",
  task_invalid: "user",
  harness_unknown: "user",
  plugin_unknown: "user",
  plugin_invalid: "user",
  request_invalid: "user",
  model_unknown: "user",
  unauthorized: "user",
  not_found: "user",
  unsafe_host_refused: "user",
  engine_without_token_ids: "user",
  no_call_seen: "user",
  session_sealed: "policy",
  budget_spent: "policy",
  too_many_requests: "policy",
  context_length_exceeded: "policy",
  call_failed: "policy",
  harness_failed: "policy",
  harness_timeout: "policy",
  sandbox_out_of_memory: "policy",
  sandbox_disk_full: "policy",
  tool_service_killed: "policy",
  output_too_large: "policy",
  output_unreadable: "policy",
  engine_unreachable: "infrastructure",
  engine_error: "infrastructure",
  engine_aborted: "infrastructure",
  engine_misaligned: "infrastructure",
  engine_paused: "infrastructure",
  policy_gone: "infrastructure",
  node_unfit: "infrastructure",
  drain_timeout: "infrastructure",
  sandbox_unavailable: "infrastructure",
  sandbox_unhealthy: "infrastructure",
  sandbox_died: "infrastructure",
  sandbox_error: "infrastructure",
  tool_service_failed: "infrastructure",
  user_failed: "infrastructure",
  harness_blind: "infrastructure",
  image_pull_failed: "infrastructure",
  image_build_failed: "infrastructure",
  pack_failed: "infrastructure",
  grader_error: "infrastructure",
  grader_timeout: "infrastructure",
  grader_unreachable: "infrastructure",
  verifier_unavailable: "infrastructure",
  judge_abstained: "infrastructure",
  task_set_aside: "infrastructure",
  rollout_set_aside: "infrastructure",
  store_full: "infrastructure",
  store_error: "infrastructure",
  replay_diverged: "infrastructure",
  cancelled: "infrastructure",
  internal: "infrastructure",
} as const;

export type ErrorCode = keyof typeof errorCodes;
export type ErrorOwner = (typeof errorCodes)[ErrorCode];

/** What a sandbox failed at: the doing of its machine, or of what its task asks for. */
export const sandboxFailures: readonly ErrorCode[] = [
  "sandbox_unavailable",
  "sandbox_unhealthy",
  "sandbox_died",
  "sandbox_error",
  "image_pull_failed",
  "image_build_failed",
];

/**
 * A failure with a stable code. `status` is the HTTP status for a caller of the API; `param` names the field at fault;
 * `retryAfterSeconds` is the wait that the failing side asked for, or null. `sampledNothing`: whether the engine's answer
 * proves that it sampled nothing; null where no answer says it.
 */
export class AlidadeError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly param: string | null;
  readonly retryAfterSeconds: number | null;
  readonly sampledNothing: boolean | null;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      cause?: unknown;
      status?: number | undefined;
      param?: string | null;
      retryAfterSeconds?: number | null;
      sampledNothing?: boolean;
    } = {},
  ) {
    super(bounded(message, maxMessage), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AlidadeError";
    this.code = code;
    this.status = options.status ?? defaultStatus[code] ?? (errorCodes[code] === "user" ? 400 : 500);
    this.param = options.param == null ? null : bounded(options.param, maxParam);
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
    this.sampledNothing = options.sampledNothing ?? null;
  }

  get owner(): ErrorOwner {
    return errorCodes[this.code];
  }

  toJSON(): { code: ErrorCode; message: string; param: string | null } {
    return { code: this.code, message: this.message, param: this.param };
  }
}

/** A sentence of ours with an engine's traceback in it. A message may quote what a stranger wrote, which has no end. */
const maxMessage = 8_000;
/** The longest path of a field that is no attack. */
const maxParam = 200;

/** The text's beginning, and how much there was. Copied, for the beginning of a string keeps all of it in memory. */
function bounded(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${Buffer.from(text.slice(0, limit)).toString()}… (${text.length} characters)`;
}

/** SDKs retry 408, 409, 429 and 5xx, so errors that must not be retried have other statuses. */
const defaultStatus: Partial<Record<ErrorCode, number>> = {
  unauthorized: 401,
  not_found: 404,
  model_unknown: 404,
  session_sealed: 400,
  budget_spent: 400,
  too_many_requests: 429,
  context_length_exceeded: 400,
  engine_unreachable: 503,
  engine_error: 502,
  engine_aborted: 502,
  engine_misaligned: 502,
  engine_paused: 503,
  policy_gone: 400,
  drain_timeout: 409,
  store_full: 503,
  store_error: 503,
  // Asked again it would diverge again.
  replay_diverged: 400,
};

/**
 * The error itself when it is ours, otherwise one with `code` and the original as its cause. A plug-in need not import our
 * class: an error of its own whose `code` is one of the list keeps it.
 */
export function asAlidadeError(error: unknown, code: ErrorCode, prefix = ""): AlidadeError {
  if (error instanceof AlidadeError) return error;
  if (error instanceof Error && "code" in error && typeof error.code === "string" && Object.hasOwn(errorCodes, error.code))
    return new AlidadeError(error.code as ErrorCode, error.message, { cause: error });
  return new AlidadeError(code, `${prefix}${messageOf(error)}`, { cause: error });
}

/** Any thrown value as one line. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message || error.name : String(error);
}

/** Runs `body` and names the boundary that broke: plug-ins throw plain errors, this says where they crossed. */
export async function boundary<T>(code: ErrorCode, what: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    throw asAlidadeError(error, code, `${what}: `);
  }
}
