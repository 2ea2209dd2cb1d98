/**
 * Behind which turns of a group's rollouts others are forked. A policy is a file beside this one and a line of `registry.ts`, or
 * a user's own file:
 *
 *     export default {
 *       name: "first_turn",
 *       title: "behind the first turn of each rollout",
 *       forks: ({ places }) => places.filter(({ turn }) => turn === 1),
 *     } satisfies BranchingPolicy;
 */

/** A turn behind which a rollout can be forked: its answer is kept, and the one behind it is sampled anew. */
export type ForkPlace = {
  readonly rollout_id: string;
  /** As `alidade show` numbers it. */
  readonly turn: number;
  /** 0: of a rollout that is no fork; 1: of a fork of one. */
  readonly depth: number;
  /** The place's order among those of its rollout, from 0, and how many those are. */
  readonly index: number;
  readonly of: number;
  /** Mean −logprob, in nats, of the tokens that were sampled behind it; null: unknown. */
  readonly surprise: number | null;
  /** Whether the turn behind it answered to the results of tools. */
  readonly after_tools: boolean;
  /** Rollouts that were forked there so far. */
  readonly forks: number;
  /** Its rollout's; null: it was not measured. */
  readonly reward: number | null;
};

/** A group whose rollouts so far are over. */
export type TreeSoFar = {
  readonly places: readonly ForkPlace[];
  /** How many forks may begin now. */
  readonly room: number;
  /** The most forks behind one turn. */
  readonly width: number;
  /** Those that the configuration names, of `at_turns`. */
  readonly turns: readonly number[];
  /** From 0 to below 1, the same for the same group at the same point: for a choice by chance. */
  readonly random: () => number;
};

export type BranchingPolicy = {
  readonly name: string;
  readonly title: string;
  /**
   * Where forks begin, the best place first; a place may stand there several times. What is beyond `room` or `width` is left
   * out. If it throws, the group gets no more forks.
   */
  forks(tree: TreeSoFar): readonly Pick<ForkPlace, "rollout_id" | "turn">[];
};
