/** The allocation policies. Without one each group gets its `samples`. */
import type { AllocationPolicy, GroupSoFar } from "./allocation-policy.ts";
import { balanced } from "./balanced.ts";

const policies = [balanced] as const satisfies readonly AllocationPolicy[];
export const allocationNames = policies.map(({ name }) => name);

type Allocation = { policy: (typeof allocationNames)[number]; first: number; most: number };

/**
 * How many samples the group gets beyond its first ones, and what is left then for groups that come later. `spare`: what
 * earlier groups have left. Whatever the policy says, all groups together get at most `samples` each.
 */
export function allocated(
  { policy: name, first, most }: Allocation,
  { rewards, samples }: Pick<GroupSoFar, "rewards" | "samples">,
  spare: number,
): { more: number; spare: number } {
  const wanted = policies.find((one) => one.name === name)?.more({ rewards, samples, first, most }) ?? samples - first;
  const there = spare + samples - first;
  const more = Math.max(0, Math.min(wanted, most - first, there));
  return { more, spare: there - more };
}
