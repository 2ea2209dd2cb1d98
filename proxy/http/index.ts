export { Bounds } from "./bounds.ts";
export { FairShare } from "./fair-share.ts";
export { closeListener, type HttpServer, listenOn, serverOf } from "./listen.ts";
export { RequestBytes } from "./request-bytes.ts";
export type { TlsPair } from "./tls-files.ts";
