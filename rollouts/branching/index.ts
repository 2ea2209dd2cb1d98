export type { BranchingPolicy, ForkPlace, TreeSoFar } from "./branching-policy.ts";
export { chooseForks, type TreeMember, type WantedFork } from "./choose-forks.ts";
export { branchingPolicies, branchingRegistry } from "./registry.ts";
