/**
 * All that a session's log decides, as plain data: what restore and match look into, what the budgets have left, why the
 * session ended, where its calls go, what its harness was told last, and which reward is the last. Two sessions that say
 * the same here go on alike.
 */

import type { Session } from "../../../proxy/index.ts";
import type { Call } from "../../../proxy/session/call.ts";

export function stateOf(session: Session) {
  const { state } = session;
  const calls = [...state.calls.values()];
  const { opened, spent, endedBy, stopReason, lastError, lastFailure, callCount, revision, sealed, tries } = state;
  const tables = { tools: [...state.tools], conversations: [...state.conversations], deleted: [...state.deleted] };
  return {
    ...{ opened, spent, endedBy, stopReason, lastError, callCount, revision, sealed, tries },
    lastFailure: lastFailure && { error: lastFailure.error, call: lastFailure.call?.id ?? null },
    ...tables,
    calls: calls.map((call) => recordOf(call)),
    unanswered: calls.filter((call) => state.unanswered.has(call)).map(({ id }) => id),
    emitted: calls.map((call) => call.turn && state.emitted.find(call.turn.message, call.messages)?.call.id),
    places: calls.map((call) => state.emitted.at(call.messages.length).map(({ id }) => id)),
    pausedMs: session.pausedSince(opened.time, Number.MAX_SAFE_INTEGER),
  };
}

function recordOf(call: Call) {
  const { begun, messages, outcome, delivery, fingerprints, promptLength, turn, conversation } = call;
  return { begun, messages, outcome, delivery, fingerprints, promptLength, turn, conversation, ids: call.tokens && [...call.tokens] };
}
