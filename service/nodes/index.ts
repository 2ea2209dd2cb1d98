export { sampledBy } from "./attempt-result.ts";
export { newestName } from "./newest-name.ts";
export { faultsOfMachine } from "./node-health.ts";
export { OldRecords } from "./old-records.ts";
export { type NodeSetup, runNode } from "./run-node.ts";
