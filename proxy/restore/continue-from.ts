/**
 * A request may name an earlier answer instead of sending the conversation again. The record holds that conversation as
 * the engine got it, so it goes on without a detour through the harness: nothing of it needs to be restored.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { NeutralRequest } from "../../base/schema/message.ts";
import type { Restored } from "../../base/schema/session-log.ts";
import type { Session } from "../session/session.ts";
import type { RestoreResult } from "./restore.ts";

/** `sent`: what the request itself says, restored. Throws `not_found` where the call is no longer there. */
export function continueFrom(session: Session, { continues }: NeutralRequest, sent: RestoreResult): RestoreResult {
  if (!continues) return sent;
  const { skip, head } = continues;
  const earlier = session.call(continues.call_id);
  const turn = earlier?.turn;
  if (!earlier || !turn) throw new AlidadeError("not_found", `call ${continues.call_id} has no answer to go on from`);
  const stored = [...earlier.messages.slice(skip), turn.message];
  const moved = (restored: Restored[], by: number): Restored[] =>
    restored.map((one) => ({ ...one, message_index: one.message_index + by }));
  const named: Restored = {
    message_index: head + stored.length - 1,
    from_call_id: earlier.id,
    evidence: "reference",
    status: "identical",
    differences: [],
  };
  return {
    messages: [...sent.messages.slice(0, head), ...stored, ...sent.messages.slice(head)],
    restored: [...moved(earlier.begun.restored, head - skip), named, ...moved(sent.restored, stored.length)],
    parent: sent.parent ?? earlier,
  };
}
