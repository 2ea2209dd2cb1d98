export type { Blobs } from "./blobs.ts";
export { FolderBlobs } from "./folder-blobs.ts";
export { isBlobKey } from "./keys.ts";
export { openBlobs } from "./open-blobs.ts";
export { getPacked, isPackedAs, type PackedBlob, putPacked } from "./packed.ts";
