export { type NodeSetup, runNode } from "./run-node.ts";
