/** How a run, or a set of a service, builds trees of rollouts. */
import { z } from "zod";

export const Branching = z
  .strictObject({
    policy: z.string().default("uniform").describe("where forks begin: a built-in policy, or a file that begins with ./ or /"),
    leaves: z.number().int().min(2).max(1024).describe("rollouts of a group, its forks among them"),
    width: z.number().int().min(1).max(64).default(2).describe("the most forks behind one turn"),
    depth: z.number().int().min(1).max(16).default(1).describe("1: forks of rollouts from the beginning; 2: forks of these too, and so on"),
    unrepeatable: z
      .boolean()
      .optional()
      .describe("true: also forks tasks that are not repeatable (`environment.repeatable`); left out: refuses such tasks by name"),
    turns: z.array(z.number().int().positive()).max(256).default([]).describe("of `at_turns`: the turns, as `alidade show` numbers them"),
  })
  .describe("forks of a group's rollouts: `samples` rollouts begin at the task's beginning, and the forks after turns of these");
export type Branching = z.infer<typeof Branching>;

/** The places of one round of forks in a group: `from` is included, `to` is not. Rounds count from 1. */
export type ForkRound = { number: number; from: number; to: number };

/** Returns the round of a place in the group; the rounds share the leaves. null: the place begins at the task's beginning. */
export function forkRoundOf({ leaves, depth }: Pick<Branching, "leaves" | "depth">, samples: number, place: number): ForkRound | null {
  let from = samples;
  for (let number = 1; number <= depth && place >= from; number++) {
    const to = from + Math.ceil((leaves - from) / (depth - number + 1));
    if (place < to) return { number, from, to };
    from = to;
  }
  return null;
}
