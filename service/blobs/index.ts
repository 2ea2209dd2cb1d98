export type { Blobs, OwnBlobs } from "./blobs.ts";
export { FolderBlobs } from "./folder-blobs.ts";
export { isBlobKey } from "./keys.ts";
export { openBlobs, openOwnBlobs } from "./open-blobs.ts";
export { getAllPacked, getPacked, type PackedBlob, piecesOf, putAllPacked, putPacked } from "./packed.ts";
