export type { BranchingPolicy, ForkPlace, TreeSoFar } from "./branching-policy.ts";
export { chooseForks, type ForkPoint, type TreeMember } from "./choose-forks.ts";
export { branchingPolicies, branchingRegistry } from "./registry.ts";
