/**
 * Is this request new, or a client's second try at one that we have? Two requests are the same call when session,
 * agent, model, conversation and form of the answer are the same; `stream`, `max_tokens`, `seed` and the like do not
 * count. An identical body may also be a sample of its own (parallel sub-agents begin alike), so it is a retry only when
 * the earlier one did not finish from the client's point of view.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../session/call.ts";
import type { CallRun } from "../session/call-run.ts";
import type { WaitingClient } from "../session/running.ts";
import type { Session } from "../session/session.ts";

/** A predecessor whose connection looks open gets this long to show its close: a retry often overtakes the FIN. */
const closeGraceMs = 250;

export type Match =
  /** A sample of its own; `retryOf` names the failed call that it repeats. */
  | { type: "new"; retryOf: Call | null }
  /** Still generating or not yet written down, its client gone: wait for it. */
  | { type: "join"; run: CallRun }
  /** Finished and not delivered: the stored turn is given again. */
  | { type: "replay"; call: Call };

/** A client that waits for an answer. */
type Asker = WaitingClient & { readonly signal: AbortSignal };

/** A joined or replayed call belongs to this client from now on: the next equal request gets another one. */
export async function match(session: Session, fingerprint: string, asker: Asker): Promise<Match> {
  await graceForClose(session, fingerprint, asker.signal);
  const left = session.unanswered(fingerprint).filter((call) => !session.running.isWaitedFor(call));
  // They are samples of one question, so whose client this is does not matter: what is there already comes first.
  const finished = left.find((call) => call.turn && !session.running.of(call));
  const run = finished ? null : left.map((call) => session.running.of(call)).find((one) => one !== null);
  const call = finished ?? run?.call;
  if (!call) return { type: "new", retryOf: left[0] ?? failedElsewhere(session, fingerprint) };
  session.running.join(call, asker);
  return run ? { type: "join", run } : { type: "replay", call };
}

/** Some harnesses go to another model when one fails: that is their next try, but what was sampled is never another's. */
function failedElsewhere(session: Session, fingerprint: string): Call | null {
  const { running } = session;
  const isFailed = (call: Call): boolean => !call.turn && !running.of(call) && !running.isWaitedFor(call);
  return session.unansweredElsewhere(fingerprint).find(isFailed) ?? null;
}

/** Waits until one of the calls that ask the same is left by its client, all of them are answered, or the grace is over. */
async function graceForClose(session: Session, fingerprint: string, signal: AbortSignal): Promise<void> {
  if (session.unanswered(fingerprint).length === 0) return;
  const { running } = session;
  const over = new AbortController();
  let grace: Promise<void> | null = null;
  try {
    while (!over.signal.aborted) {
      const calls = session.unanswered(fingerprint);
      if (calls.length === 0 || calls.some((call) => !running.isWaitedFor(call))) return;
      grace ??= sleep(closeGraceMs, undefined, { signal: AbortSignal.any([signal, over.signal]) })
        .catch(() => undefined)
        .then(() => over.abort());
      await Promise.race([grace, ...calls.map((call) => Promise.all(running.clientsOf(call).map((client) => client.closed)))]);
      // The answer to a connection that has just closed is noted before this goes on.
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    over.abort();
  }
}
