/** Behind the turns that the configuration names, of each rollout alike. */
import type { BranchingPolicy } from "./branching-policy.ts";
import { inRounds } from "./in-rounds.ts";

export const atTurns = {
  name: "at_turns",
  title: "behind the turns that `turns` names",
  forks: ({ places, turns, width }) =>
    inRounds(
      places.filter(({ turn }) => turns.includes(turn)),
      width,
    ),
} as const satisfies BranchingPolicy;
