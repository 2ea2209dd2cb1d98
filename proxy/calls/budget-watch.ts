/**
 * A budget that is spent during a call ends the call at once, as a seal does: the sample so far is kept and typed, and the
 * client gets the reason.
 */

import { pausableClock } from "../session/pausable-clock.ts";
import type { Session } from "../session/session.ts";
import { budgetSpent } from "./admit.ts";
import type { Call } from "./call.ts";

/**
 * What is to be called when more of a call was sampled; null where no budget can end it. A call that samples the last
 * token of a budget is whole; the one that needs more than that is cut.
 */
export function sampledBudget(session: Session, call: Call): (() => void) | null {
  const limit = session.spec.budgets.max_sampled_tokens;
  if (limit === undefined) return null;
  return () => {
    let sampled = session.spent.sampledTokens;
    for (const { finished, generation } of session.inFlight) if (finished === null) sampled += generation?.sampledTokens ?? 0;
    if (sampled > limit) void call.generation?.stop(budgetSpent(session, "max_sampled_tokens", sampled));
  };
}

/** Ends the call when the session's time is over. Disposed when the call is. */
export function wallClock(session: Session, call: Call): Disposable {
  const limit = session.spec.budgets.max_wall_seconds;
  if (limit === undefined) return { [Symbol.dispose]: () => undefined };
  return pausableClock(session, session.spent.firstCall ?? Date.now(), limit, (seconds) => {
    void call.generation?.stop(budgetSpent(session, "max_wall_seconds", seconds));
  });
}
