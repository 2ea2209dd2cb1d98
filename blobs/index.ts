export type { Blobs } from "./blobs.ts";
export { FolderBlobs } from "./folder-blobs.ts";
export { isBlobKey } from "./keys.ts";
export { openBlobs } from "./open-blobs.ts";
export { getAllPacked, getPacked, isPackedAs, type PackedBlob, putAllPacked, putPacked } from "./packed.ts";
