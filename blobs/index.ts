export type { Blobs } from "./blobs.ts";
export { FolderBlobs } from "./folder-blobs.ts";
export { openBlobs } from "./open-blobs.ts";
export { getPacked, type PackedBlob, putPacked } from "./packed.ts";
