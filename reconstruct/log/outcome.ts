/** Whether a call's turn reached its harness. This is independent of how the next prompt renders the turn. */

import type { Restored } from "../../base/schema/session-log.ts";
import type { CallOutcome } from "../../base/schema/trajectory.ts";
import type { CallHistory } from "./call-history.ts";
import type { Conversations } from "./conversations.ts";

/** What later requests prove about a call, by ids or carriers that only its answer can have brought. */
export type AnswerUse = "used" | "edited" | "cut";

/**
 * Call id -> what later requests prove. Text and tool calls of an answer travel together, so one recognised id means that
 * the answer was read. Equal text at the same position proves it too, unless another turn with this text was read there. If
 * only the beginning of a turn came back at its position, the turn was read that far, unless it also came back whole: a
 * command inside a sandbox can send any part of a turn while its harness continues with all of it.
 */
export function findEvidence(calls: CallHistory[], places: Conversations): Map<string, AnswerUse> {
  const evidence = new Map<string, AnswerUse>();
  const whole = new Set<string>();
  const byId = new Map(calls.map((call) => [call.call_id, call]));
  for (const call of calls)
    for (const restored of call.begun.restored) {
      if (restored.status !== "edited") whole.add(restored.from_call_id);
      const isCut = restored.differences.some((difference) => difference.endsWith("_cut"));
      if (isCut && !whole.has(restored.from_call_id)) evidence.set(restored.from_call_id, "cut");
      const earlier = byId.get(restored.from_call_id);
      if (earlier === undefined) continue;
      if (restored.evidence === "content") {
        // A turn that surely arrived whole needs no more proof, and the search costs a walk.
        const known = evidence.get(earlier.call_id);
        if (known === "used" || (earlier.complete && known !== "cut")) continue;
        if (!isWordForWord(restored, call, earlier, places, evidence)) continue;
      }
      if (restored.status !== "edited") evidence.set(restored.from_call_id, "used");
      else if (!evidence.has(restored.from_call_id)) evidence.set(restored.from_call_id, "edited");
    }
  return evidence;
}

/** The text is at the position where the earlier call emitted it, and no other call with this text there was read. */
function isWordForWord(
  { status, message_index }: Restored,
  call: CallHistory,
  earlier: CallHistory,
  places: Conversations,
  evidence: Map<string, AnswerUse>,
): boolean {
  if (status === "edited") return false;
  const before = places.input.get(earlier.call_id);
  let place = places.input.get(call.call_id);
  while (place && place.depth > message_index) place = place.parent ?? undefined;
  if (before === undefined || place !== before) return false;
  const answer = places.output.get(earlier.call_id);
  const twins = before.marks.filter((other) => other !== earlier && places.output.get(other.call_id) === answer);
  return twins.every((twin) => !twin.complete && evidence.get(twin.call_id) !== "used");
}

export function outcomeOf(call: CallHistory, evidence: AnswerUse | undefined): CallOutcome {
  const { finished, answered } = call;
  // Its end cannot be read, and the line behind it says that the answer arrived.
  if (finished === null && call.damage !== null && call.complete) return "delivered";
  // A process that was killed in the middle of a generation leaves a call that never finished.
  if (finished === null || finished.error !== null || finished.finish_reason === "error") return "failed";
  if (evidence === "cut") return "partial";
  if (call.complete) return "delivered";
  if (answered?.delivery === "error") return "failed";
  // The record of the delivery is missing, but the harness goes on with what was in it.
  if (evidence === "used") return "delivered";
  if (evidence === "edited") return "partial";
  return "undelivered";
}
