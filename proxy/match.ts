/**
 * Is this request new, or a client's second try at one that we have? Two requests are the same call when session,
 * agent and conversation are the same; `stream`, `max_tokens`, `seed` and the like do not count. An identical body may
 * also be a sample of its own (parallel sub-agents begin alike), so it is a retry only when the earlier one did not
 * finish from the client's point of view.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Message, Prompt, ToolChoice } from "../schema/message.ts";
import { type Call, messageKey } from "./call.ts";
import type { Session } from "./session.ts";

/** A predecessor whose connection looks open gets this long to show its close: a retry often overtakes the FIN. */
const closeGraceMs = 250;

export type Match =
  /** A sample of its own; `retryOf` names the failed call that it repeats. */
  | { type: "new"; retryOf: Call | null }
  /** Still generating or not yet written down, its client gone: wait for it. */
  | { type: "join"; call: Call }
  /** Finished and not delivered: the stored turn is given again. */
  | { type: "replay"; call: Call };

export async function match(session: Session, fingerprint: string, signal: AbortSignal): Promise<Match> {
  const earlier = session.byFingerprint.get(fingerprint);
  if (!earlier) return { type: "new", retryOf: null };
  await graceForClose(earlier, signal);
  if (isWaitedFor(earlier)) return { type: "new", retryOf: null };
  if (session.inFlight.has(earlier) || earlier.unsaved) return { type: "join", call: earlier };
  if (!earlier.turn) return { type: "new", retryOf: earlier };
  return earlier.delivery === "complete" ? { type: "new", retryOf: null } : { type: "replay", call: earlier };
}

function isWaitedFor(call: Call): boolean {
  return [...call.connections].some((connection) => !connection.isClosed);
}

/** Waits until the call's open connections have closed or the grace is over. */
async function graceForClose(call: Call, signal: AbortSignal): Promise<void> {
  if (call.connections.size === 0) return;
  const timer = new AbortController();
  await Promise.race([
    Promise.all([...call.connections].map((connection) => connection.closed)),
    sleep(closeGraceMs, undefined, { signal: AbortSignal.any([signal, timer.signal]) }).catch(() => undefined),
  ]);
  timer.abort();
  // Whoever answered a connection that has just closed notes how it ended before this goes on.
  await new Promise((resolve) => setImmediate(resolve));
}

/** Identity of a request: what makes it the same question to the same model by the same agent. */
export function fingerprintOf(identity: {
  agent: string;
  messages: Message[];
  prompt?: Prompt | undefined;
  toolsHash: string | null;
  toolChoice: ToolChoice | null;
}): string {
  const hash = createHash("sha256");
  hash.update(JSON.stringify([identity.agent, identity.toolsHash, identity.toolChoice]));
  if (identity.prompt) hash.update(JSON.stringify(identity.prompt));
  for (const message of identity.messages) hash.update(messageKey(message)).update("\n");
  return hash.digest("hex");
}
