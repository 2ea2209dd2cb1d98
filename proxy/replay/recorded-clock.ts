/** The clock of a session's budgets, as its record tells it: it stands still from a process's death to the end of the replay behind it. */
import type { LogLine } from "../../base/schema/session-log.ts";

/** `at`: a place among the lines of the log. `ms`: what the clock says at `time`; null: it stands still from here on. */
export type ClockMark = { at: number; time: number; ms: number | null };

/** A moment at which a call was begun or had ended. */
export type RecordedMoment = { at: number; time: number };

export function clockMarkOf(line: LogLine, at: number): ClockMark[] {
  if (line.type === "resumed") return [{ at, time: line.time, ms: null }];
  if (line.type === "replay_ended") return [{ at, time: line.time, ms: line.recorded_ms }];
  return [];
}

/**
 * What the clock says at the last of these moments. `begun`: when it began. `pausedWithin`: milliseconds of a span in which it stood
 * still otherwise.
 */
export function clockAt(
  marks: readonly ClockMark[],
  moments: readonly RecordedMoment[],
  begun: number,
  pausedWithin: (from: number, to: number) => number,
): number {
  const all = [{ at: -1, time: begun, ms: 0 }, ...marks];
  const spans = all.map(({ at, time, ms }, index) => {
    const until = all[index + 1]?.at ?? Infinity;
    const last = moments.reduce((to, one) => (one.at > at && one.at < until ? Math.max(to, one.time) : to), 0);
    return ms === null || last === 0 ? 0 : ms + Math.max(0, last - time - pausedWithin(time, last));
  });
  return Math.max(...spans);
}
