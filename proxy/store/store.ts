/**
 * Where session logs live. What `append` has acknowledged survives a kill -9 of the process: it was handed to the
 * operating system in one write, in order.
 */
import type { Media } from "../../base/media/media.ts";
import type { LogEntry, LogLine } from "../../base/schema/session-log.ts";

export interface SessionLog extends AsyncDisposable {
  readonly sessionId: string;
  /** What stands in it; absent where it takes no place that others need. */
  readonly bytes?: number;
  /**
   * Resolves when the entries are durable, appends in the order in which they stand in the log. Throws AlidadeError `store_full` or `store_error`, and `request_invalid` or
   * `internal` for an entry that its own schema refuses (base/schema/valid-entry.ts); the log is then as it was before, and
   * the next append may succeed.
   */
  append(...entries: LogEntry[]): Promise<void>;
}

export interface Store {
  readonly name: string;
  /** Where the pictures that its logs name lie. Absent: pictures stay in the logs. */
  readonly media?: Media;
  /** Opens the log of a session for appending; made when it is not there. */
  open(sessionId: string): Promise<SessionLog>;
  /** Replaces the log of an idle session by these entries. If that fails, the log keeps its earlier entries. Throws as `append`. */
  replace(sessionId: string, entries: readonly LogEntry[]): Promise<void>;
  /** All acknowledged entries, in order. A torn last line is left out; any other damaged line is reported. */
  read(sessionId: string): Promise<LogLine[]>;
  list(): Promise<string[]>;
}
