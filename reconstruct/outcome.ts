/** Whether a call's turn reached its harness: a fact of its own, apart from how the next prompt renders it. */

import type { z } from "zod";
import type { CallOutcome } from "../schema/trajectory.ts";
import type { CallHistory } from "./read-log.ts";

export type Outcome = z.infer<typeof CallOutcome>;

/** What later requests prove of a call by ids or carriers that only its answer can have brought. */
export type Evidence = "used" | "edited" | "cut";

/**
 * Call id -> what later requests prove. Equal content proves nothing: a retry may have said the same. Text and tool
 * calls travel with their ids in one answer, so one recognised id means that this answer was read. A turn whose first
 * part alone came back, in its very place, was read as far as that, unless it had come back whole before.
 */
export function findEvidence(calls: CallHistory[]): Map<string, Evidence> {
  const evidence = new Map<string, Evidence>();
  const whole = new Set<string>();
  for (const call of calls)
    for (const restored of call.begun.restored) {
      if (restored.status !== "edited") whole.add(restored.from_call_id);
      const isCut = restored.differences.some((difference) => difference.endsWith("_cut"));
      if (isCut && !whole.has(restored.from_call_id)) evidence.set(restored.from_call_id, "cut");
      if (restored.evidence === "content") continue;
      if (restored.status !== "edited") evidence.set(restored.from_call_id, "used");
      else if (!evidence.has(restored.from_call_id)) evidence.set(restored.from_call_id, "edited");
    }
  return evidence;
}

export function outcomeOf(call: CallHistory, evidence: Evidence | undefined): Outcome {
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
