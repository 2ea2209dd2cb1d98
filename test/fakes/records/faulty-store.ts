/** A store in memory whose disk is full, or slow, when a test says so. */
import { AlidadeError } from "../../../base/errors.ts";
import type { LogEntry } from "../../../base/schema/session-log.ts";
import { MemoryStore, type SessionLog, type Store } from "../../../proxy/store/index.ts";

export class FaultyStore implements Store {
  readonly name = "faulty";
  readonly #memory = new MemoryStore();
  /** Which entries find no space. */
  full: (entry: LogEntry) => boolean = () => false;
  /** What an entry waits for before it is written. */
  slow: (entry: LogEntry) => Promise<unknown> | undefined = () => undefined;
  /** Logs that are open now. */
  openLogs = 0;

  async open(sessionId: string): Promise<SessionLog> {
    const log = await this.#memory.open(sessionId);
    let isOpen = true;
    this.openLogs++;
    return {
      sessionId,
      append: async (...entries) => {
        for (const entry of entries) await this.slow(entry);
        if (!isOpen) throw new AlidadeError("store_error", `${sessionId} was written after it was closed`);
        if (entries.some(this.full)) throw new AlidadeError("store_full", "no space left to record");
        await log.append(...entries);
      },
      [Symbol.asyncDispose]: async () => {
        if (isOpen) this.openLogs--;
        isOpen = false;
      },
    };
  }

  replace(sessionId: string, entries: readonly LogEntry[]): Promise<void> {
    return this.#memory.replace(sessionId, entries);
  }

  read(sessionId: string): Promise<LogEntry[]> {
    return this.#memory.read(sessionId);
  }

  list(): Promise<string[]> {
    return this.#memory.list();
  }
}
