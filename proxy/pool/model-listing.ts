/**
 * Asks an engine again what it serves: it loads adapters while it runs. Every caller gets a list that was begun after it asked,
 * so that what was just loaded is found. At most one list a second is begun, so that strangers with names that no engine serves
 * cannot make it ask for each call.
 */
import { setTimeout as sleep } from "node:timers/promises";

const restMs = 1_000;

export class ModelListing {
  readonly #list: () => Promise<void>;
  /** Begins as soon as the one before it is over and the engine had its rest. */
  #next: Promise<void> | null = null;
  #rested: Promise<unknown> = Promise.resolve();

  /** `list` asks, and keeps what it got. */
  constructor(list: () => Promise<void>) {
    this.#list = list;
  }

  /** Never rejects: an engine that does not answer keeps the list that it had. */
  again(): Promise<void> {
    this.#next ??= this.#rested.then(() => {
      this.#next = null;
      const listed = this.#list().catch(() => undefined);
      this.#rested = Promise.all([listed, sleep(restMs, undefined, { ref: false })]);
      return listed;
    });
    return this.#next;
  }
}
