/**
 * A record is valid when it is appended. Whatever made it, an entry that its own schema refuses would make the log
 * unreadable from there on, so it is refused before it is written.
 *
 * The whole entry is checked. A log holds only what is new, and one loop checks a list of token ids, so that a call takes
 * 50 µs: writing a prompt of 28 000 ids takes 30 times as long as its check, and 500 messages 4 times as long.
 */
import { AlidadeError } from "../errors.ts";
import { complaintOf } from "./complaints/complaint.ts";
import { LogEntry } from "./session-log.ts";

/** Entries that say what a request says: where one is invalid, the request is at fault. */
const ofRequests = new Set<LogEntry["type"]>(["tools", "call_begun", "conversation", "deleted"]);

/** Throws `request_invalid` (400) for what a request said and `internal` (500) for what was made here; both name the field. */
export function assertValidEntry(entry: LogEntry): void {
  const checked = LogEntry.safeParse(entry);
  if (checked.success) return;
  const { path, given, message } = complaintOf(checked.error, entry);
  const field = path.join(".");
  throw new AlidadeError(
    ofRequests.has(entry.type) ? "request_invalid" : "internal",
    `This cannot be recorded: ${field} of the ${entry.type} record is ${given} (${message}).`,
    { param: field, cause: checked.error },
  );
}
