/**
 * A budget that is spent during a call ends the call at once, as a seal does: the sample so far is kept and typed, and the
 * client gets the reason.
 */

import type { CallRun } from "../session/call-run.ts";
import { pausableClock } from "../session/pausable-clock.ts";
import type { Session } from "../session/session.ts";
import { budgetSpent } from "./admit.ts";

/**
 * What is to be called when more of a call was sampled; null where no budget can end it. A call that samples the last
 * token of a budget is whole; the one that needs more than that is cut.
 */
export function sampledBudget(session: Session, run: CallRun): (() => void) | null {
  const limit = session.spec.budgets.max_sampled_tokens;
  if (limit === undefined) return null;
  return () => {
    let sampled = session.state.spent.sampledTokens;
    // A moment long one may be in the log and here.
    for (const { call, sampledTokens } of session.running.inFlight()) if (call.outcome === null) sampled += sampledTokens;
    if (sampled > limit) run.stop(budgetSpent(session.spec, "max_sampled_tokens", sampled));
  };
}

/** Ends the call when the session's time is over. Disposed when the call is. */
export function wallClock(session: Session, run: CallRun): Disposable {
  const limit = session.spec.budgets.max_wall_seconds;
  if (limit === undefined) return { [Symbol.dispose]: () => undefined };
  return pausableClock(session, session.state.spent.firstCall ?? Date.now(), limit, (seconds) => {
    run.stop(budgetSpent(session.spec, "max_wall_seconds", seconds));
  });
}
