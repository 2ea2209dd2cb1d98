/** One JSONL file a session, `<folder>/<session_id>.jsonl`: the embedded default. */
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../errors.ts";
import { LogEntry } from "../schema/session-log.ts";
import { Appender } from "./appender.ts";
import type { SessionLog, Store } from "./store.ts";

export class DiskStore implements Store {
  readonly name = "disk";
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async open(sessionId: string): Promise<SessionLog> {
    await mkdir(this.folder, { recursive: true });
    const file = await Appender.open(this.#path(sessionId));
    return {
      sessionId,
      append: (...entries) => file.append(entries.map((entry) => `${JSON.stringify(entry)}\n`).join("")),
      [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
    };
  }

  async read(sessionId: string): Promise<LogEntry[]> {
    return readJsonLines(this.#path(sessionId), (value) => LogEntry.parse(value));
  }

  async list(): Promise<string[]> {
    const names = await readdir(this.folder).catch((): string[] => []);
    return names.filter((name) => name.endsWith(".jsonl")).map((name) => name.slice(0, -".jsonl".length));
  }

  #path(sessionId: string): string {
    // Ids are ours, but a path is made of this one.
    if (!/^[A-Za-z0-9_-]{1,80}$/.test(sessionId)) throw new AlidadeError("not_found", `no session is named "${sessionId}"`);
    return join(this.folder, `${sessionId}.jsonl`);
  }
}

/**
 * The values of a JSONL file. What follows the last newline is the torn line of a killed process and is left out; any
 * other line that does not parse is an error that names the line, for silence there would lose what was recorded.
 */
export async function readJsonLines<T>(path: string, parse: (value: unknown) => T): Promise<T[]> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return lines.flatMap((line, index) => {
    if (line === "") return [];
    try {
      return [parse(JSON.parse(line))];
    } catch (error) {
      throw new AlidadeError(
        "store_error",
        `${path} line ${index + 1} is not a record of ours: ${(error as Error).message.slice(0, 300)}`,
        { cause: error },
      );
    }
  });
}
