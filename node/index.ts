export { newestName } from "./newest-name.ts";
export { type NodeSetup, runNode } from "./run-node.ts";
