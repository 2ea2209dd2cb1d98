/**
 * Where finished trajectories lie, outside of the ledger: it holds a kilobyte a rollout and no tokens. A blob is there whole
 * before the ledger names it, so a crash between the two leaves a blob too many, never one too few.
 */
export interface Blobs {
  /** A folder, or a URL, as a person knows it. */
  readonly place: string;
  /**
   * Resolves when the bytes would survive a crash. The same key is written once only. Throws `store_full`, `store_error`, and the
   * signal's reason where it waits for a server that is away.
   */
  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>;
  /**
   * Returns null if it is not there. Throws `store_error` if it cannot be read. `patient`: waits for a server that is away as long as
   * `put` does, until this signal fires; then throws its reason.
   */
  get(key: string, patient?: AbortSignal): Promise<Buffer | null>;
  /**
   * Removes the copies of session logs (log-copies.ts) of this attempt of the rollout `name`, and of earlier attempts. A later attempt
   * may be at work elsewhere. Throws `store_error`, and the signal's reason.
   */
  removeLogs(name: string, attempt: number, signal?: AbortSignal): Promise<void>;
}

/** A place of the service's own, which also takes what nodes send, and removes what is needed no more. */
export interface OwnBlobs extends Blobs {
  /**
   * As `put`, of bytes that come in pieces and are never in memory together. What `pieces` throws is thrown, and nothing is kept then:
   * a source that throws at its end refuses the bytes.
   */
  putPieces(key: string, pieces: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /**
   * Removes each blob whose key begins with `name` and a slash, except the blob with the key `kept`. Throws `store_error`, and the
   * signal's reason.
   */
  removeBelow(name: string, kept?: string | null, signal?: AbortSignal): Promise<void>;
}
