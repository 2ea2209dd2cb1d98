/**
 * Where the model was least sure of what to do with what its tools had said. ARPO (Dong et al. 2025, arXiv:2507.19849) found
 * that entropy rises behind tool results, and forks there. What is recorded of it is the mean −logprob of the sampled tokens.
 */
import type { BranchingPolicy } from "./branching-policy.ts";
import { inRounds } from "./in-rounds.ts";

export const surprising = {
  name: "surprising",
  title: "behind tool results after which the sampled tokens have the highest mean −logprob (ARPO)",
  forks: ({ places, width }) => {
    const known = places.filter(({ after_tools, surprise }) => after_tools && surprise !== null);
    return inRounds(
      known.toSorted((one, other) => (other.surprise ?? 0) - (one.surprise ?? 0)),
      width,
    );
  },
} as const satisfies BranchingPolicy;
