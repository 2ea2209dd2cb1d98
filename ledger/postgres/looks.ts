/**
 * Changes of other processes that are found by looking for them, and only while one waits here. Results and answers of nodes
 * come a hundred times a second. A notification of each would wake the connection of each node, which at a hundred nodes takes
 * more of the server than all else.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Changes, type Waitable } from "../changes.ts";

/** A reader hears of a result half of this later on average. A look is one statement that reads a few pages. */
const pauseMs = 25;
/** The next look at a server that does not answer. */
const awayMs = 1_000;

export class Looks implements Waitable, AsyncDisposable {
  readonly #look: () => Promise<string>;
  readonly #changes = new Changes();
  readonly #stop = new AbortController();
  #mark = "";
  #waiting = 0;
  #looking: Promise<void> | null = null;

  /** `look`: a mark that is another one after each change. */
  constructor(look: () => Promise<string>) {
    this.#look = look;
  }

  get version(): number {
    return this.#changes.version;
  }

  async after(seen: number, signal: AbortSignal): Promise<number> {
    this.#waiting += 1;
    this.#looking ??= this.#lookOn();
    try {
      return await this.#changes.after(seen, signal);
    } finally {
      this.#waiting -= 1;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#looking;
  }

  /** While one waits. */
  async #lookOn(): Promise<void> {
    const { signal } = this.#stop;
    while (this.#waiting > 0 && !signal.aborted) {
      const pause = await this.#once();
      await sleep(pause, undefined, { signal }).catch(() => undefined);
    }
    this.#looking = null;
  }

  /** Milliseconds until the next look. */
  async #once(): Promise<number> {
    try {
      const mark = await this.#look();
      if (mark !== this.#mark) this.#changes.add();
      this.#mark = mark;
      return pauseMs;
    } catch {
      return awayMs;
    }
  }
}
