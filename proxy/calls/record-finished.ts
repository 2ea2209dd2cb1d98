/** Writes down how a call ended. An answer that no record can hold fails its call, and that failure is what is recorded. */
import { AlidadeError } from "../../base/errors.ts";
import type { CallFinished, Tried } from "../../base/schema/session-log.ts";
import type { IdText } from "../../base/tokens/id-text.ts";
import { toErrorRecord } from "../session/error-record.ts";
import type { Session } from "../session/session.ts";

/** Null, or the failure that was recorded instead. `prompt`: its prompt's ids, whole. Throws where nothing could be written. */
export async function recordFinished(
  session: Session,
  tries: Tried[],
  finished: CallFinished,
  prompt: IdText | null,
): Promise<AlidadeError | null> {
  try {
    await session.record([...tries, finished], { prompt });
    return null;
  } catch (error) {
    if (!(error instanceof AlidadeError) || error.code !== "internal") throw error;
    const failure = new AlidadeError("engine_error", `the engine's answer is left out: ${error.message}`, { cause: error });
    await session.record([...tries, failedWith(failure, finished)]);
    return failure;
  }
}

/** Nothing of what the engine said, and why. */
function failedWith(failure: AlidadeError, { time, call_id, pauses }: CallFinished): CallFinished {
  return {
    type: "call_finished",
    time,
    call_id,
    prompt_ids: null,
    sampled_ids: null,
    logprobs: null,
    logprob_semantics: { kind: null, grammar: false },
    missing: failure.message,
    message: null,
    finish_reason: "error",
    stop: null,
    usage: { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null },
    policy: null,
    ...(pauses && { pauses }),
    engine: null,
    engine_model: null,
    error: toErrorRecord(failure),
  };
}
