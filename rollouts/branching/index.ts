export { Branching } from "./branching.ts";
export type { BranchingPolicy, ForkPlace, TreeSoFar } from "./branching-policy.ts";
export { branchingPolicies, branchingRegistry } from "./registry.ts";
