/**
 * A grader that runs a work in parts sees some of them end and others not. What those come to is known only when it is clear
 * that the work took the time, and not the machine.
 */
import { z } from "zod";
import type { Verdict } from "../../base/schema/rollout.ts";

/** In the evidence: which parts did not end, and the reward where that is the work's doing. */
const HungParts = z.object({ parts: z.array(z.string()), reward: z.number(), formula: z.string().optional() });

/** Names in a verdict are for a person. */
const mostNames = 50;

/** `verdict` as it is where the parts that did not end count as failed. */
export function withHungParts({ formula, ...verdict }: Verdict, parts: readonly string[], limit: string): Verdict {
  const { reward } = verdict;
  const hung = { parts: parts.slice(0, mostNames), reward, ...(formula !== undefined && { formula }) };
  const message = `${parts[0]} did not end in its time (${limit})${parts.length > 1 ? `, nor did ${parts.length - 1} more` : ""}`;
  const error = { code: "grader_timeout", message, status: null } as const;
  return { ...verdict, reward: null, status: "grader_timeout", error, evidence: { ...verdict.evidence, hung } };
}

/** The verdict with what the work's own doing earns; null: it is not about parts. */
export function provenHungParts(verdict: Verdict): Verdict | null {
  const { data } = HungParts.safeParse(verdict.evidence.hung);
  if (data === undefined) return null;
  const { reward, formula } = data;
  return { ...verdict, reward, status: "graded", error: null, ...(formula !== undefined && { formula }) };
}
