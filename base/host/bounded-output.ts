/**
 * Keeps `limit` bytes of a stream, its first or its last ones, and counts the rest: what a command prints is untrusted and
 * may be endless.
 */
import type { Readable } from "node:stream";

export class BoundedOutput {
  readonly #limit: number;
  readonly #keep: "start" | "end";
  #chunks: Buffer[] = [];
  #held = 0;
  #lost = 0;

  constructor(limit: number, keep: "start" | "end" = "start") {
    this.#limit = limit;
    this.#keep = keep;
  }

  push(chunk: Buffer): void {
    const room = this.#keep === "end" ? chunk.length : Math.min(chunk.length, this.#limit - this.#held);
    if (room > 0) this.#chunks.push(chunk.subarray(0, room));
    this.#held += room;
    this.#lost += chunk.length - room;
    // Not at every chunk: twice the memory buys that each byte is moved once, however small the pieces are.
    if (this.#held > 2 * this.#limit) this.#cut();
  }

  /** Keeps what a stream brings. One that breaks has said all that it will: the end of its process tells why. */
  follow(stream: Readable | null): this {
    stream?.on("data", (chunk: Buffer) => this.push(chunk)).on("error", () => {});
    return this;
  }

  get dropped(): number {
    return this.#lost + Math.max(0, this.#held - this.#limit);
  }

  /** Everything kept so far, which is then no longer here. */
  take(): Buffer {
    this.#cut();
    this.#held = 0;
    return Buffer.concat(this.#chunks.splice(0));
  }

  /** UTF-8; bytes that are none become U+FFFD. */
  toString(): string {
    this.#cut();
    return Buffer.concat(this.#chunks).toString("utf8");
  }

  #cut(): void {
    if (this.#held <= this.#limit) return;
    this.#chunks = [Buffer.concat(this.#chunks).subarray(this.#held - this.#limit)];
    this.#lost += this.#held - this.#limit;
    this.#held = this.#limit;
  }
}
