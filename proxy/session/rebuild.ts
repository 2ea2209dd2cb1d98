/** A session from its log: what a crashed process knew, and nothing that it had not written down. */
import { AlidadeError } from "../../base/errors.ts";
import type { LogLine } from "../../base/schema/session-log.ts";
import type { Store } from "../store/index.ts";
import { LazyLog } from "./lazy-log.ts";
import { Session } from "./session.ts";

/**
 * A session of the store as it was. Finished without answered counts as undelivered; begun without finished as failed.
 * A damaged line costs its call, and the calls that are stored as what is new after it, as in reconstruct/log/damage.ts. Of a
 * sealed session only what a late reward needs is kept. Null where a killed process had not even written that it was
 * opened; throws `store_error` where the line that says so is damaged.
 */
export async function rebuildSession(store: Store, sessionId: string): Promise<Session | null> {
  const [opened, ...lines] = await store.read(sessionId);
  if (opened === undefined) return null;
  if (opened.type !== "opened") throw new AlidadeError("store_error", `session ${sessionId}: ${whyNotOpened(opened)}`);
  const session = new Session(opened, new LazyLog(store, sessionId));
  for (const line of lines) session.bringBack(line);
  if (session.sealed !== null) await session.release();
  return session;
}

function whyNotOpened(line: LogLine): string {
  return line.type === "damaged" ? line.reason : "its log does not begin with `opened`";
}
