/**
 * Where finished trajectories lie, outside of the ledger: it holds a kilobyte a rollout and no tokens. A blob is there whole
 * before the ledger names it, so a crash between the two leaves a blob too many, never one too few.
 */
export interface Blobs {
  /** Resolves when the bytes would survive a crash. The same key is written once only. Throws `store_full`, `store_error`. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Throws `store_error` where it is not there. */
  get(key: string): Promise<Buffer>;
}
