/**
 * A session's log that is open only while it is written: thousands of sealed sessions hold no file, and a late reward opens
 * its file again.
 */
import type { Media } from "../../base/media/media.ts";
import type { LogEntry } from "../../base/schema/session-log.ts";
import type { SessionLog, Store } from "../store/index.ts";

export class LazyLog {
  readonly #open: () => Promise<SessionLog>;
  #log: Promise<SessionLog> | null = null;
  /** As large as it was after the last append. */
  bytes = 0;
  /** null: pictures stay in the log. */
  readonly media: Media | null;
  readonly #writing = new Set<Promise<void>>();

  constructor(store: Store, sessionId: string) {
    this.#open = () => store.open(sessionId);
    this.media = store.media ?? null;
  }

  async append(...entries: LogEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const write = this.#write(entries);
    this.#writing.add(write);
    try {
      await write;
    } finally {
      this.#writing.delete(write);
    }
  }

  /** Waits for what is being written. The next append opens the log again. */
  async close(): Promise<void> {
    while (this.#writing.size > 0) await Promise.allSettled(this.#writing);
    const log = this.#log;
    this.#log = null;
    await (await log)?.[Symbol.asyncDispose]();
  }

  async #write(entries: LogEntry[]): Promise<void> {
    this.#log ??= this.#open().catch((error: unknown) => {
      this.#log = null;
      throw error;
    });
    const log = await this.#log;
    await log.append(...entries);
    this.bytes = log.bytes ?? 0;
  }
}
