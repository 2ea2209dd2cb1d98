/** One JSONL file a session, `<folder>/<session_id>.jsonl`: the embedded default. */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../errors.ts";
import { LogEntry } from "../schema/session-log.ts";
import { Appender } from "./appender.ts";
import { readJsonLines } from "./json-lines.ts";
import type { SessionLog, Store } from "./store.ts";
import { toStoreError } from "./store-error.ts";

/** Ids are ours, but paths are made of them. */
const sessionIds = /^[A-Za-z0-9_-]{1,80}$/;

export class DiskStore implements Store {
  readonly name = "disk";
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async open(sessionId: string): Promise<SessionLog> {
    const path = this.#path(sessionId);
    await mkdir(this.folder, { recursive: true }).catch((error: unknown) => {
      throw toStoreError(this.folder, error);
    });
    const file = await Appender.open(path);
    return {
      sessionId,
      append: (...entries) => file.append(entries.map((entry) => `${JSON.stringify(entry)}\n`).join("")),
      [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
    };
  }

  async read(sessionId: string): Promise<LogEntry[]> {
    return Array.fromAsync(this.entries(sessionId));
  }

  /** The same one by one, for who needs the first of them only. */
  entries(sessionId: string): AsyncGenerator<LogEntry> {
    return readJsonLines(this.#path(sessionId), (value) => LogEntry.parse(value));
  }

  async list(): Promise<string[]> {
    const names = await readdir(this.folder).catch((error: NodeJS.ErrnoException): string[] => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    const ids = names.filter((name) => name.endsWith(".jsonl")).map((name) => name.slice(0, -".jsonl".length));
    // What somebody put beside the logs ("notes (copy).jsonl") is no session of ours.
    return ids.filter((id) => sessionIds.test(id));
  }

  #path(sessionId: string): string {
    if (!sessionIds.test(sessionId)) throw new AlidadeError("not_found", `no session is named "${sessionId}"`);
    return join(this.folder, `${sessionId}.jsonl`);
  }
}
