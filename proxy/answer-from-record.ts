/** Answers about answers, from a session's record. A turn that is read there has arrived. */
import type { RecordRequest } from "../dialects/dialect.ts";
import type { Call } from "./call.ts";
import type { Exchange } from "./exchange.ts";
import { noteRead } from "./note-read.ts";
import type { Session } from "./session.ts";
import { sessionRecord } from "./session-record.ts";

/** Resolves when the answer has left or its client is gone. Throws what the dialect does, and the store's errors. */
export async function answerFromRecord(session: Session, exchange: Exchange, request: RecordRequest): Promise<void> {
  const read = new Set<Call>();
  const record = sessionRecord(session, exchange.dialect, (call) => read.add(call));
  const body = await exchange.dialect.answerFromRecord?.(request, record);
  await exchange.send({ status: 200, headers: {}, body: body ?? {} });
  if (exchange.delivered) await noteRead(session, read);
}
