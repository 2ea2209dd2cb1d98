/**
 * What it means that the harness's own last turn (proxy/session/own-turn.ts) failed. An agent can make a call fail whenever it
 * likes, by what it sends, so a failure alone is the policy's result: it is the infrastructure's where the engine fails a
 * question of our own as well, where the engine never saw the call, or where only the trainer or our own disk can have caused it.
 *
 * | the last turn failed with | the engine, asked by us | meaning |
 * | --- | --- | --- |
 * | `engine_error`, `engine_aborted`, `engine_misaligned`, `engine_unreachable` whose kept connections closed | fails, or is too busy | infrastructure |
 * | the same | answers, fast or slowly | the call's own fault: `call_failed` |
 * | the same, and there is no engine | | infrastructure |
 * | `engine_unreachable` that took no connection, `engine_paused`, `policy_gone`, `store_full`, `store_error` | not asked | infrastructure |
 * | `cancelled`, `internal`, any other of ours | not asked | `call_failed` |
 * | what the policy or the request was refused for | not asked | no failure of a call |
 */
import { type ErrorCode, errorCodes } from "../base/errors.ts";
import type { ErrorRecord } from "../base/schema/session-log.ts";
import type { EngineState, HarnessProxy, Session } from "../proxy/index.ts";

/** What the engine says, or what its connection comes to: a request may have brought it about. */
const engineCodes: ReadonlySet<string> = new Set<ErrorCode>(["engine_error", "engine_aborted", "engine_misaligned", "engine_unreachable"]);
/** Weight updates and our own disk: out of the reach of what a call says. */
const beyondCalls: ReadonlySet<string> = new Set<ErrorCode>(["engine_paused", "policy_gone", "store_full", "store_error"]);
/**
 * An engine that took no connection is out of that reach too. A question of ours would have met the same at that moment, and a
 * supervisor may have started the engine again before we can ask one. A kept connection that closes may be the request's doing.
 */
const tookNoConnection = /\b(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)\b|Connect Timeout/;

/** `record.code` is the infrastructure's own, or `call_failed`. */
export type FailedTurn = { isInfrastructure: boolean; record: ErrorRecord };

/** Null where the last turn was answered, or refused for a reason of its own. Ask when nothing of the session runs any more. */
export async function failedTurn(
  pool: HarnessProxy["pool"],
  lastFailure: Session["lastFailure"],
  signal: AbortSignal,
): Promise<FailedTurn | null> {
  if (!lastFailure || errorCodes[lastFailure.error.code as ErrorCode] !== "infrastructure") return null;
  const { error, served } = lastFailure;
  if (error.code === "engine_unreachable" && tookNoConnection.test(error.message)) return toFailedTurn(error, true, null);
  if (!engineCodes.has(error.code)) return toFailedTurn(error, beyondCalls.has(error.code), null);
  const state = served === null ? null : await pool.watch.stateOf(served.slot, served.model, signal);
  return toFailedTurn(error, state === null || state === "fails" || state === "busy", state);
}

const seen: Record<EngineState, string> = {
  answers: "the engine answered a short question of ours right after",
  slow: "the engine answered a short question of ours right after, slowly",
  busy: "the engine had no time for a short question of ours either",
  fails: "the engine failed a short question of ours as well",
};

function toFailedTurn({ code, message, status }: ErrorRecord, isInfrastructure: boolean, state: EngineState | null): FailedTurn {
  const evidence = state === null ? "" : `; ${seen[state]}`;
  const text = `the last call of the harness failed: ${isInfrastructure ? "" : `${code}: `}${message}${evidence}`;
  return { isInfrastructure, record: { code: isInfrastructure ? code : "call_failed", message: text, status } };
}
