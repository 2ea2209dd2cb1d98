export { Appender } from "./appender.ts";
export { DiskStore, readJsonLines } from "./disk.ts";
export { MemoryStore } from "./memory.ts";
export type { SessionLog, Store } from "./store.ts";
