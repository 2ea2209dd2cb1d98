/** Turns by chance, as Tree-GRPO expands its trees (Ji et al. 2025, arXiv:2509.21240): each with the same probability. */
import type { BranchingPolicy } from "./branching-policy.ts";
import { inRounds } from "./in-rounds.ts";

export const uniform = {
  name: "uniform",
  title: "behind turns by chance, each with the same probability (Tree-GRPO)",
  forks: ({ places, width, random }) => {
    const drawn = places.map((place) => ({ place, at: random() })).toSorted((one, other) => one.at - other.at);
    return inRounds(
      drawn.map(({ place }) => place),
      width,
    );
  },
} as const satisfies BranchingPolicy;
