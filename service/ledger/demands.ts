/** What a set demands of the verdicts of its rollouts, whichever node makes them. */
import { Tier } from "../../base/schema/rollout.ts";
import type { SetSpec } from "./records.ts";
import { conflicting } from "./refusals.ts";

export type Demands = Pick<SetSpec, "min_tier" | "admitted_only">;

/** What both demand. A demand that neither makes is left out. */
export function strictest(one: Demands, other: Demands): Demands {
  const min_tier = Tier.options[Math.max(rankOf(one), rankOf(other))];
  return {
    ...(min_tier !== undefined && { min_tier }),
    ...((one.admitted_only || other.admitted_only) && { admitted_only: true }),
  };
}

/** Throws 409 where rows of a set that was made with the demands `kept` may not meet those that are `wanted` now. */
export function assertAsStrict(kept: Demands, wanted: Demands): void {
  if (rankOf(kept) >= rankOf(wanted) && (kept.admitted_only || !wanted.admitted_only)) return;
  throw conflicting(
    "key",
    `the set was made with ${demandText(kept)}, and ${demandText(wanted)} is demanded now, which rows that it has may not meet: make a set with a key of its own`,
  );
}

function demandText({ min_tier, admitted_only }: Demands): string {
  const words = [...(min_tier === undefined ? [] : [`min_tier ${min_tier}`]), ...(admitted_only ? ["admitted_only"] : [])];
  return words.join(" and ") || "no demands";
}

/** -1: none is demanded. */
function rankOf({ min_tier }: Demands): number {
  return min_tier === undefined ? -1 : Tier.options.indexOf(min_tier);
}
