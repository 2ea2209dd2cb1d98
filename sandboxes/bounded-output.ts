/** Keeps the first `limit` bytes of a stream and counts the rest: what a command prints is untrusted and may be endless. */
export class BoundedOutput {
  readonly #limit: number;
  readonly #chunks: Buffer[] = [];
  #kept = 0;
  dropped = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    const room = Math.min(chunk.length, this.#limit - this.#kept);
    if (room > 0) this.#chunks.push(chunk.subarray(0, room));
    this.#kept += room;
    this.dropped += chunk.length - room;
  }

  /** Everything kept so far, which is then no longer here. */
  take(): Buffer {
    const bytes = Buffer.concat(this.#chunks.splice(0));
    this.#kept = 0;
    return bytes;
  }

  /** UTF-8; bytes that are none become U+FFFD. */
  toString(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }
}
