/** Answers about answers, from a session's record. A turn that is read there has arrived. */

import type { RecordRequest } from "../../dialects/index.ts";
import type { Gate } from "../../http/gate.ts";
import type { HttpExchange } from "../../http/http-exchange.ts";
import type { Call } from "../../session/call.ts";
import type { Session } from "../../session/session.ts";
import { sessionRecord } from "./session-record.ts";

/**
 * Resolves when the answer has left or its client is gone. A short request may cause an answer of any length, so the answer
 * is charged like new bytes of the session. Throws what the dialect does, `too_many_requests`, and the store's errors.
 */
export async function answerFromRecord(session: Session, exchange: HttpExchange, request: RecordRequest, gate: Gate): Promise<void> {
  // What is brought to open a conversation has been looked at already.
  if (request.method === "GET") await gate.owesNothing(session, exchange.signal);
  const read = new Set<Call>();
  const record = sessionRecord(session, exchange.dialect, (call) => read.add(call));
  const body = await exchange.dialect.answerFromRecord?.(request, record);
  const sent = exchange.send({ status: 200, headers: {}, body: body ?? {} });
  gate.given(session, exchange.answerBytes);
  await sent;
  if (exchange.delivered) await noteRead(session, read);
}

/** For a turn that a client has by another way than its answer. Records the delivery of calls whose answer is not known to have arrived. Throws the store's errors. */
export async function noteRead(session: Session, calls: Iterable<Call>): Promise<void> {
  for (const call of calls)
    if (!session.isDelivered(call))
      await session.noteAnswer(call, { type: "replayed", time: Date.now(), call_id: call.id, delivery: "complete" });
}
