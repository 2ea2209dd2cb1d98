/**
 * Verdicts of a grader that runs a work in parts, of which some did not end. The reward stays null until it is clear that the
 * work took the time, and not the machine.
 */
import { z } from "zod";
import type { Verdict } from "../../base/schema/rollout.ts";

/** Stands in the evidence as `hung`: the parts that did not end, and the reward if that is the work's doing. */
const HungParts = z.object({ parts: z.array(z.string()), reward: z.number(), formula: z.string().optional() });

/** A person reads these names; more would hide the rest of the verdict. */
const mostNames = 50;

/** Returns a verdict without a reward. `verdict`: the one in which the parts that did not end count as failed. */
export function withHungParts({ formula, ...verdict }: Verdict, parts: readonly string[], limit: string): Verdict {
  const { reward } = verdict;
  const hung = { parts: parts.slice(0, mostNames), reward, ...(formula !== undefined && { formula }) };
  const message = `${parts[0]} did not end in its time (${limit})${parts.length > 1 ? `, nor did ${parts.length - 1} more` : ""}`;
  const error = { code: "grader_timeout", message, status: null } as const;
  return { ...verdict, reward: null, status: "grader_timeout", error, evidence: { ...verdict.evidence, hung } };
}

/** Returns the verdict for a work that is at fault. null: the verdict has no parts that did not end. */
export function provenHungParts(verdict: Verdict): Verdict | null {
  const { data } = HungParts.safeParse(verdict.evidence.hung);
  if (data === undefined) return null;
  const { reward, formula } = data;
  return { ...verdict, reward, status: "graded", error: null, ...(formula !== undefined && { formula }) };
}
