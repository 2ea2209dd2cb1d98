/** The branching policies. Without `branching` a group is as many rollouts from the task's beginning. Adding one is a file here and a line below. */
import { registryOf } from "../../base/host/plug-ins.ts";
import { atTurns } from "./at-turns.ts";
import type { BranchingPolicy } from "./branching-policy.ts";
import { surprising } from "./surprising.ts";
import { uniform } from "./uniform.ts";

export const branchingPolicies = [uniform, surprising, atTurns] as const satisfies readonly BranchingPolicy[];

export const branchingRegistry = registryOf<BranchingPolicy>({
  noun: "branching policy",
  param: "branching",
  list: branchingPolicies,
  members: { name: "text", title: "text", forks: "function" },
});
