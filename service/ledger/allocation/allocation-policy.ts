/**
 * How many samples the groups of a set get. A policy is a file beside this one and a line of `index.ts`, or a user's own file:
 *
 *     export default {
 *       name: "unsettled",
 *       title: "more samples for tasks that pass sometimes",
 *       more: ({ task, samples, first, most }) => {
 *         const { measured = 0, passed = 0 } = task.total ?? {};
 *         if (measured === 0) return samples - first;
 *         return passed > 0 && passed < measured ? most - first : 0;
 *       },
 *     } satisfies AllocationPolicy;
 */
import type { History } from "./set-history.ts";

/** A group whose first samples are over. */
export type GroupSoFar = {
  readonly task_id: string;
  /** Rewards of its results that stand. */
  readonly rewards: readonly number[];
  /** What a group has on the average: all groups together get no more. */
  readonly samples: number;
  /** What it has had. */
  readonly first: number;
  /** The most that it may have. */
  readonly most: number;
  /** What earlier groups of the same task in this set measured. Without this group. */
  readonly task: History;
  /** What all earlier groups of this set measured. Without this group. */
  readonly set: History;
};

export type AllocationPolicy = {
  readonly name: string;
  readonly title: string;
  /**
   * Returns the samples that the group should have beyond its first ones. It gets as many as earlier groups have left. It
   * runs inside a transaction of the ledger, so it must answer at once. If it throws, or returns no number, the group gets
   * `samples`.
   */
  more(group: GroupSoFar): number;
};
