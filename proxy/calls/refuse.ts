/** Answers a failure in the caller's dialect and writes down that it was: of a call that was begun, or of none. */

import { type AlidadeError, asAlidadeError } from "../../base/errors.ts";
import type { ErrorRecord } from "../../base/schema/session-log.ts";
import type { CallLabels } from "../dialects/index.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Call } from "../session/call.ts";
import { toErrorRecord } from "../session/error-record.ts";
import type { Session } from "../session/session.ts";
import { otherError } from "./answer.ts";
import type { CallSurroundings } from "./surroundings.ts";

/** How far a request got. */
export type KnownRequest = { call: Call | null; labels: CallLabels | null; parent: Call | null };

/** Never throws. */
export async function refuse(
  session: Session,
  known: KnownRequest,
  exchange: Exchange,
  thrown: unknown,
  around: CallSurroundings,
): Promise<void> {
  const error = asAlidadeError(thrown, "internal");
  if (error.code === "internal") around.onError(thrown, `answering ${exchange.dialect.name}`);
  // What was too much is not hashed either.
  if (isTooMuch(error)) exchange.bytes.release();
  const { call } = known;
  const unwritten = (second: unknown): void => around.onError(second, "writing down a refusal");
  try {
    const refusal = exchange.dialect.error(error);
    // Before the client can act on it, as an answer is.
    if (!call) await noteRefused(session, known, exchange, toErrorRecord(error)).catch(unwritten);
    if (!exchange.headersSent) await exchange.send(refusal);
    if (call) await noteFailed(session, call, exchange, refusal.status, error).catch(unwritten);
  } catch (second) {
    around.onError(second, "answering a refusal");
  }
}

function noteFailed(session: Session, call: Call, { delivered }: Exchange, status: number, error: AlidadeError): Promise<void> {
  const delivery = delivered ? "error" : "cut";
  return session.noteAnswer(call, {
    type: "answered",
    time: Date.now(),
    call_id: call.id,
    delivery,
    status,
    ...otherError({ call }, error),
  });
}

function isTooMuch({ code, status }: AlidadeError): boolean {
  return code === "too_many_requests" || status === 413;
}

/** A sealed log takes no more, and one that is full none beyond the reason why. */
async function noteRefused(session: Session, { labels, parent }: KnownRequest, exchange: Exchange, error: ErrorRecord): Promise<void> {
  if (session.sealed !== null || isLogFull(session)) return;
  const body = await exchange.bytes.seen();
  await session.note({
    type: "refused",
    time: Date.now(),
    dialect: exchange.dialect.name,
    body,
    ...(labels && { request_class: labels.request_class }),
    ...(parent && { parent_call_id: parent.id }),
    error,
  });
}

/** True if the session ended because its log was full, and the room for last refusals is used too. */
function isLogFull({ spec, state, logBytes }: Session): boolean {
  const { max_log_bytes: limit } = spec.budgets;
  return limit !== undefined && state.endedBy === "max_log_bytes" && logBytes > limit + lastWordsBytes;
}

/** Room beyond the limit for a few last refusals, which say why the session ended. */
const lastWordsBytes = 64 * 1024;
