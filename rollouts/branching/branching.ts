/** What a run says of its trees. */
import { z } from "zod";

export const Branching = z
  .strictObject({
    policy: z.string().default("uniform").describe("where forks begin: a built-in policy, or a file that begins with ./ or /"),
    leaves: z.number().int().min(2).max(1024).describe("rollouts of a group, its forks among them"),
    width: z.number().int().min(1).max(64).default(2).describe("the most forks behind one turn"),
    depth: z.number().int().min(1).max(16).default(1).describe("1: forks of rollouts from the beginning; 2: forks of these too, and so on"),
    turns: z.array(z.number().int().positive()).max(256).default([]).describe("of `at_turns`: the turns, as `alidade show` numbers them"),
  })
  .describe("forks of a group's rollouts: `samples` of them begin at the task's beginning, and the others behind turns of those");
export type Branching = z.infer<typeof Branching>;
