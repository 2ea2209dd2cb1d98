/**
 * Asks an engine again what it serves: it may load adapters while it runs. Each caller gets a list that started after its question,
 * so an adapter that was just loaded is found. At most one list a second is started, so calls with unknown names cannot flood the
 * engine.
 */
import { setTimeout as sleep } from "node:timers/promises";

const restMs = 1_000;

export class ModelListing {
  readonly #list: () => Promise<void>;
  /** The next list. Starts when the one before is over and the pause has passed. */
  #next: Promise<void> | null = null;
  #rested: Promise<unknown> = Promise.resolve();

  /** `list` asks the engine and keeps the answer. */
  constructor(list: () => Promise<void>) {
    this.#list = list;
  }

  /** Never rejects: if the engine does not answer, its last list stays. */
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
