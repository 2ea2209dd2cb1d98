/** Time as budgets count it: it stands still while calls of the session wait for an engine and none is sampled. */

/** What the clock asks of a session. */
type Paused = {
  pausedSince(from: number, now: number): number;
  /** The clock stands still, and then goes on from a later time. */
  readonly isReplaying?: boolean;
};

/** While it stands still nothing is nearer its end; it is looked at again in this. */
const againMs = 100;
/** The longest delay that a timer takes is 24.8 days. */
const longestMs = 86_400_000;
/** A replay ends at any moment, and the clock has then gone on by what was recorded. */
const replayingMs = 1_000;

/** Seconds from one moment (in milliseconds since 1970) to another. */
export function secondsBetween(session: Paused, from: number, to: number): number {
  return (to - from - session.pausedSince(from, to)) / 1000;
}

/** Calls `onOver`, once, with the seconds that have gone by since `from` when they reach the limit; not after it was disposed. */
export function pausableClock(session: Paused, from: number, limitSeconds: number, onOver: (seconds: number) => void): Disposable {
  let timer: NodeJS.Timeout | undefined;
  const look = (earliestMs: number): void => {
    const seconds = secondsBetween(session, from, Date.now());
    if (seconds >= limitSeconds) {
      onOver(seconds);
      return;
    }
    timer = setTimeout(
      () => look(againMs),
      Math.min(Math.max((limitSeconds - seconds) * 1000, earliestMs), session.isReplaying ? replayingMs : longestMs),
    );
    timer.unref();
  };
  look(1);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}
