/** How many samples the groups of a set get. A policy is a file beside this one and a line of `index.ts`. */

/** A group whose first samples are over. */
export type GroupSoFar = {
  /** Rewards of its results that stand. */
  rewards: readonly number[];
  /** What a group has on the average: all groups together get no more. */
  samples: number;
  /** What it has had. */
  first: number;
  /** The most that it may have. */
  most: number;
};

export type AllocationPolicy = {
  readonly name: string;
  /** Samples that it should have beyond the first ones. It gets as many as earlier groups have left. */
  more(group: GroupSoFar): number;
};
