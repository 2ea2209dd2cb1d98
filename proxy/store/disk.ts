/** One JSONL file a session, `<folder>/<session_id>.jsonl`, and their pictures, `<folder>/media/<sha256>`: the embedded default. */
import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { MediaFolder, mediaFolder } from "../../base/media/media-folder.ts";
import type { LogEntry, LogLine } from "../../base/schema/session-log.ts";
import { assertValidEntry } from "../../base/schema/valid-entry.ts";
import { recordVersions, type Versions } from "../../base/schema/versions/record-versions.ts";
import { Appender } from "./appender.ts";
import { readJsonLines } from "./json-lines.ts";
import { logReader } from "./log-reader.ts";
import { makePrivateFolder, privateFileMode } from "./private.ts";
import { rewriteOldLog } from "./rewrite-old-log.ts";
import type { SessionLog, Store } from "./store.ts";
import { toStoreError } from "./store-error.ts";

/** Ids are ours, but paths are made of them. */
const sessionIds = /^[A-Za-z0-9_-]{1,80}$/;

export class DiskStore implements Store {
  readonly name = "disk";
  readonly folder: string;
  readonly media: MediaFolder;
  readonly #versions: Versions;

  /** `versions`: of the logs, and how one of the version before is read. */
  constructor(folder: string, versions: Versions = recordVersions.log) {
    this.folder = folder;
    this.media = new MediaFolder(join(folder, mediaFolder));
    this.#versions = versions;
  }

  async open(sessionId: string): Promise<SessionLog> {
    const path = this.#path(sessionId);
    await makePrivateFolder(this.folder).catch((error: unknown) => {
      throw toStoreError(this.folder, error);
    });
    await rewriteOldLog(path, this.#versions).catch((error: unknown) => {
      throw toStoreError(path, error);
    });
    // A killed `replace` leaves it. A log that is opened has no other writer.
    await removeDraft(path);
    const file = await Appender.open(path);
    return {
      sessionId,
      get bytes() {
        return file.size;
      },
      append: async (...entries) => {
        for (const entry of entries) assertValidEntry(entry);
        await file.append(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
      },
      [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
    };
  }

  async replace(sessionId: string, entries: readonly LogEntry[]): Promise<void> {
    const path = this.#path(sessionId);
    for (const entry of entries) assertValidEntry(entry);
    try {
      await makePrivateFolder(this.folder);
      await writeFile(`${path}.new`, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""), { mode: privateFileMode });
      await rename(`${path}.new`, path);
    } catch (error) {
      await removeDraft(path);
      throw toStoreError(path, error);
    }
  }

  async read(sessionId: string): Promise<LogLine[]> {
    return Array.fromAsync(this.entries(sessionId));
  }

  /** The same, read one by one, for callers that need only the first ones. */
  entries(sessionId: string): AsyncGenerator<LogLine> {
    return readJsonLines<LogLine>(this.#path(sessionId), logReader(this.#versions), toDamagedLine);
  }

  async list(): Promise<string[]> {
    const names = await readdir(this.folder).catch((error: NodeJS.ErrnoException): string[] => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    const ids = names.filter((name) => name.endsWith(".jsonl")).map((name) => name.slice(0, -".jsonl".length));
    // Other files beside the logs ("notes (copy).jsonl") are no sessions.
    return ids.filter((id) => sessionIds.test(id));
  }

  #path(sessionId: string): string {
    if (!sessionIds.test(sessionId)) throw new AlidadeError("not_found", `no session is named "${sessionId}"`);
    return join(this.folder, `${sessionId}.jsonl`);
  }
}

/** Removes the unfinished file of `replace`. Throws `store_error`, `store_full`. */
async function removeDraft(path: string): Promise<void> {
  await rm(`${path}.new`, { force: true }).catch((error: unknown) => {
    throw toStoreError(path, error);
  });
}

/** How each entry of a call begins. Further into a line a stranger's words may say the same. */
const beginning = /^\{"type":"(\w{1,40})"(?:,"time":[\d.]+,"call_id":"(\w{1,80})")?/;

function toDamagedLine(line: string, { message: reason }: AlidadeError): LogLine {
  const [, entry_type = null, call_id = null] = beginning.exec(line) ?? [];
  return { type: "damaged", entry_type, call_id, reason };
}
