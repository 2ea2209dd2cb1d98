/** Logs in memory, for tests and for use without records. */
import type { LogEntry } from "../../base/schema/session-log.ts";
import { assertValidEntry } from "../../base/schema/valid-entry.ts";
import type { SessionLog, Store } from "./store.ts";

export class MemoryStore implements Store {
  readonly name = "memory";
  readonly #logs = new Map<string, LogEntry[]>();

  async open(sessionId: string): Promise<SessionLog> {
    const entries = this.#logs.get(sessionId) ?? [];
    this.#logs.set(sessionId, entries);
    return {
      sessionId,
      append: async (...added) => {
        for (const entry of added) assertValidEntry(entry);
        entries.push(...structuredClone(added));
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
  }

  async read(sessionId: string): Promise<LogEntry[]> {
    return structuredClone(this.#logs.get(sessionId) ?? []);
  }

  async list(): Promise<string[]> {
    return [...this.#logs.keys()];
  }
}
