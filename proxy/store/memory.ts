/** Logs in memory, for tests and for use without records. */
import { AlidadeError } from "../../base/errors.ts";
import type { Media } from "../../base/media/media.ts";
import type { LogEntry } from "../../base/schema/session-log.ts";
import { assertValidEntry } from "../../base/schema/valid-entry.ts";
import type { SessionLog, Store } from "./store.ts";

export class MemoryStore implements Store {
  readonly name = "memory";
  readonly media = new MemoryMedia();
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

  async replace(sessionId: string, entries: readonly LogEntry[]): Promise<void> {
    for (const entry of entries) assertValidEntry(entry);
    this.#logs.set(sessionId, structuredClone([...entries]));
  }

  async read(sessionId: string): Promise<LogEntry[]> {
    return structuredClone(this.#logs.get(sessionId) ?? []);
  }

  async list(): Promise<string[]> {
    return [...this.#logs.keys()];
  }
}

class MemoryMedia implements Media {
  readonly #bytes = new Map<string, Buffer>();

  keep(sha256: string, bytes: Buffer): void {
    this.#bytes.set(sha256, bytes);
  }

  read(sha256: string): Buffer {
    const bytes = this.#bytes.get(sha256);
    if (bytes === undefined) throw new AlidadeError("not_found", `no picture is named "${sha256}"`);
    return bytes;
  }
}
