/** Samples go from groups whose rewards are all equal, which teach nothing, to those whose rewards are mixed. */
import type { AllocationPolicy } from "./allocation-policy.ts";

export const balanced = {
  name: "balanced",
  title: "none for groups whose rewards are all equal, more for those whose rewards are mixed",
  more: ({ rewards, samples, first, most }) => {
    // One reward says nothing of the others.
    if (rewards.length < 2) return samples - first;
    return rewards.every((reward) => reward === rewards[0]) ? 0 : most - first;
  },
} as const satisfies AllocationPolicy;
