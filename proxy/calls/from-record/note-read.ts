/** A turn that a client has by another way than its answer has arrived, as one that is given again has. */

import type { Call } from "../../session/call.ts";
import type { Session } from "../../session/session.ts";

/** Records the delivery of calls whose answer is not known to have arrived. Throws the store's errors. */
export async function noteRead(session: Session, calls: Iterable<Call>): Promise<void> {
  for (const call of calls)
    if (!session.isDelivered(call))
      await session.noteAnswer(call, { type: "replayed", time: Date.now(), call_id: call.id, delivery: "complete" });
}
