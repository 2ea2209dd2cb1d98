/**
 * Changes of other processes that are found by looking for them, and only while one waits here. Results and answers of nodes
 * come a hundred times a second. A notification of each would wake the connection of each node, which at a hundred nodes takes
 * more of the server than all else.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Changes, type Waitable } from "../../../../base/host/changes.ts";

/** A reader hears of a result half of this later on average. A look is one statement that reads a few pages. */
const pauseMs = 25;
/** The next look at a server that does not answer. */
const awayMs = 1_000;

/** `mark`: for the next look. `changed`: what has changed since the last one; null: anything may have. */
export type Look = { mark: string; changed: ReadonlySet<string> | null };

export class Looks implements Waitable, AsyncDisposable {
  readonly #look: (mark: string) => Promise<Look>;
  readonly #changes = new Changes();
  readonly #stop = new AbortController();
  #mark: string;
  #waiting = 0;
  #looking: Promise<void> | null = null;

  /** What changes from now on is found. `look`: without a mark all that it brings is one. */
  static async begin(look: (mark: string | null) => Promise<Look>): Promise<Looks> {
    const { mark } = await look(null);
    return new Looks(look, mark);
  }

  private constructor(look: (mark: string) => Promise<Look>, mark: string) {
    this.#look = look;
    this.#mark = mark;
  }

  get version(): number {
    return this.#changes.version;
  }

  async after(seen: number, signal: AbortSignal, one?: string): Promise<number> {
    this.#waiting += 1;
    this.#looking ??= this.#lookOn();
    try {
      return await this.#changes.after(seen, signal, one);
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
      const { mark, changed } = await this.#look(this.#mark);
      this.#mark = mark;
      if (changed?.size !== 0) this.#changes.add(changed ?? undefined);
      return pauseMs;
    } catch {
      return awayMs;
    }
  }
}
