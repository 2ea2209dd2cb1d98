/** Gives a call's answer to a client, and writes down how that ended. */
import type { Exchange } from "../http/exchange.ts";
import { toErrorRecord } from "../session/error-record.ts";
import type { Session } from "../session/session.ts";
import { type Relayed, type RelayOptions, relay } from "./relay.ts";
import type { CallSurroundings } from "./surroundings.ts";

/** `isReplay`: the call was made for another request. Throws the call's failure where no header has left. */
export async function answer(
  session: Session,
  relayed: Relayed,
  exchange: Exchange,
  { isReplay, ...options }: RelayOptions & { isReplay: boolean },
  around: CallSurroundings,
): Promise<void> {
  const { call } = relayed;
  session.running.join(call, exchange);
  try {
    const end = await relay(session, relayed, exchange, options);
    const { delivery } = end;
    const at = { time: Date.now(), call_id: call.id };
    const told = delivery === "error" ? otherError(relayed, end.error) : {};
    await session
      .noteAnswer(
        call,
        isReplay && delivery !== "error"
          ? { type: "replayed", ...at, delivery }
          : { type: "answered", ...at, delivery, status: 200, ...told },
      )
      // The client already has its answer.
      .catch((error: unknown) => around.onError(error, `writing down how call ${call.id} was answered`));
  } finally {
    session.running.leave(call, exchange);
  }
}

/** What the record of an answer says of an error that the call's own record does not tell. */
export function otherError({ call }: Pick<Relayed, "call">, thrown: unknown): { error?: ReturnType<typeof toErrorRecord> } {
  const error = toErrorRecord(thrown);
  return call.outcome?.error?.code === error.code ? {} : { error };
}
