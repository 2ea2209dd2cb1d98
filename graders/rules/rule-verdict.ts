/** The verdict of graders that hold facts against rules: 1 where every rule holds, else 0. */
import { isApart, type Tier, type Verdict } from "../../base/schema/rollout.ts";
import type { GradeContext } from "../grader.ts";

export type RuleResult = { name: string; holds: boolean; why: string };

/** Evidence is for a person; a record must stay readable. */
const mostRules = 50;
const longestWhy = 500;

export function ruleVerdict(
  grader: string,
  results: readonly RuleResult[],
  { isolation = "none" }: Pick<GradeContext, "isolation">,
  started: number,
  evidence: Record<string, unknown> = {},
): Verdict {
  const failed = results.filter(({ holds }) => !holds);
  return {
    reward: failed.length === 0 ? 1 : 0,
    components: Object.fromEntries(results.map(({ name, holds }) => [name, { value: holds ? 1 : 0, weight: 0 }])),
    formula: "1 where all components are 1, else 0",
    status: "graded",
    tier: ruleTier(isolation),
    isolation,
    grader,
    evidence: {
      required: results.length,
      failed_count: failed.length,
      failed: failed.slice(0, mostRules).map(({ name, why }) => ({ name: name.slice(0, 200), outcome: why.slice(0, longestWhy) })),
      ...evidence,
    },
    error: null,
    duration_ms: performance.now() - started,
  };
}

/** Nothing of the work is run beside what grades it; without isolation the agent shared this machine with it. */
function ruleTier(isolation: Verdict["isolation"]): Tier {
  return isApart(isolation) ? "T3" : "T0";
}
