export type { Blobs, OwnBlobs } from "./blobs.ts";
export { FolderBlobs } from "./folder-blobs.ts";
export { isBlobKey } from "./keys.ts";
export { isLogCopyKey, type LogCopy, LogCopyHead, logPartKey, longestLogCopy, packLogPart, readLogCopy } from "./log-copies.ts";
export { openBlobs, openOwnBlobs } from "./open-blobs.ts";
export { getAllPacked, getPacked, piecesOf, putAllPacked, putPacked } from "./packed.ts";
export { mediaOf, type PackedPicture, packPictures, picturesNamedIn, unpackPictures } from "./pictures.ts";
export { packLog, unpackLog } from "./session-log.ts";
