/**
 * A turn of a thought alone has no words that a harness could send back. Once it has dropped the thought, it leaves the turn
 * out, or sends words of its own in its place. `restore: full` keeps what was sampled in the context, and so this turn.
 */
import { type Message, textOf } from "../../base/schema/message.ts";
import { type Call, normalText } from "../session/call.ts";
import { isAnswerTo } from "../session/emitted-turns.ts";
import type { Session } from "../session/session.ts";

/** The turn without words that answered this conversation and arrived, where the session restores in full. */
export function wordlessTurnBehind(session: Session, before: readonly Message[]): Call | undefined {
  if (session.spec.restore !== "full") return undefined;
  return session.state.emitted
    .at(before.length)
    .findLast((call) => call.turn && isWordless(call.turn.message) && session.isDelivered(call) && isAnswerTo(call, before));
}

/** Claude Code writes `(no content)` and `[No message content]`; nothing longer is taken for such words. */
const standIn = /^[([][^()[\]]{1,40}[)\]]$/;

export function isStandIn(message: Message): boolean {
  return message.parts.every(({ type }) => type === "text") && standIn.test(textOf(message).trim());
}

function isWordless(message: Message): boolean {
  return message.parts.every(({ type }) => type !== "tool_call") && normalText(message) === "";
}
