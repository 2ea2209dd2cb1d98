/**
 * Is this request new, or a client's second try at one that we have? Two requests are the same call when session,
 * agent, model, conversation and form of the answer are the same; `stream`, `max_tokens`, `seed` and the like do not
 * count. An identical body may also be a sample of its own (parallel sub-agents begin alike), so it is a retry only when
 * the earlier one did not finish from the client's point of view.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../calls/call.ts";
import type { Session } from "../session/session.ts";

/** A predecessor whose connection looks open gets this long to show its close: a retry often overtakes the FIN. */
const closeGraceMs = 250;

export type Match =
  /** A sample of its own; `retryOf` names the failed call that it repeats. */
  | { type: "new"; retryOf: Call | null }
  /** Still generating or not yet written down, its client gone: wait for it. */
  | { type: "join"; call: Call }
  /** Finished and not delivered: the stored turn is given again. */
  | { type: "replay"; call: Call };

/** A client that waits for an answer. */
type Asker = { readonly signal: AbortSignal; readonly closed: Promise<void>; readonly isClosed: boolean };

/** A joined or replayed call belongs to this client from now on: the next equal request gets another one. */
export async function match(session: Session, fingerprint: string, asker: Asker): Promise<Match> {
  await graceForClose(session, fingerprint, asker.signal);
  const left = session.unanswered.withRequest(fingerprint).filter((call) => !isWaitedFor(call));
  // All are samples of the same request, so it does not matter which client gets which: a finished one comes first.
  const finished = left.find((call) => call.turn && !isRunning(session, call));
  const call = finished ?? left.find((one) => isRunning(session, one));
  if (!call) return { type: "new", retryOf: left[0] ?? failedElsewhere(session, fingerprint) };
  call.connections.add(asker);
  return finished ? { type: "replay", call } : { type: "join", call };
}

/** Some harnesses go to another model when one fails: that is their next try, but what was sampled is never another's. */
function failedElsewhere(session: Session, fingerprint: string): Call | null {
  const isFailed = (call: Call): boolean => !call.turn && !isRunning(session, call) && !isWaitedFor(call);
  return session.unanswered.ofOtherModels(fingerprint).find(isFailed) ?? null;
}

function isRunning(session: Session, call: Call): boolean {
  return session.inFlight.has(call) || call.unsaved !== null;
}

function isWaitedFor(call: Call): boolean {
  return [...call.connections].some((connection) => !connection.isClosed);
}

/** Waits until one of the calls that ask the same is left by its client, all of them are answered, or the grace is over. */
async function graceForClose(session: Session, fingerprint: string, signal: AbortSignal): Promise<void> {
  if (session.unanswered.withRequest(fingerprint).length === 0) return;
  const over = new AbortController();
  let grace: Promise<void> | null = null;
  try {
    while (!over.signal.aborted) {
      const calls = session.unanswered.withRequest(fingerprint);
      if (calls.length === 0 || calls.some((call) => !isWaitedFor(call))) return;
      grace ??= sleep(closeGraceMs, undefined, { signal: AbortSignal.any([signal, over.signal]) })
        .catch(() => undefined)
        .then(() => over.abort());
      await Promise.race([grace, ...calls.map((call) => Promise.all([...call.connections].map((connection) => connection.closed)))]);
      // The handler of a connection that has just closed notes its end before this continues.
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    over.abort();
  }
}
