export { sampledBy } from "./attempt-result.ts";
export { newestName } from "./control-follower.ts";
export { readLeftAttempts } from "./left-attempts.ts";
export { faultsOfMachine } from "./node-health.ts";
export { OldRecords } from "./old-records.ts";
export { type NodeSetup, runNode } from "./run-node.ts";
