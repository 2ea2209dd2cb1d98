export { Appender } from "./appender.ts";
export { DiskStore } from "./disk.ts";
export { hasTornEnd, type LinePlace, readJsonLines, readLine } from "./json-lines.ts";
export { MemoryStore } from "./memory.ts";
export { makePrivateFolder, privateFileMode, replacePrivateFile } from "./private.ts";
export type { SessionLog, Store } from "./store.ts";
export { isFull, toStoreError } from "./store-error.ts";
export { TokenLine, tokenLineOf, vocabularyFolder } from "./token-line.ts";
export { VocabularyStore } from "./vocabulary-store.ts";
