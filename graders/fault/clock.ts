/**
 * How long a grading ran, and how long it may run. A grader with a limit puts this clock into its evidence. If a work ran out
 * of time, the clocks of the task's own files show whether the work was slow, or the machine.
 */
import { z } from "zod";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { Limits } from "../../base/schema/task.ts";

export const Clock = z.strictObject({ took_ms: z.number().nonnegative(), limit_ms: z.number().positive() });
export type Clock = z.infer<typeof Clock>;

/** Returns the clock of a command that may take all of `grade_seconds`. */
export function commandClock({ duration_ms }: { duration_ms: number }, { grade_seconds }: Pick<Limits, "grade_seconds">): Clock {
  return { took_ms: duration_ms, limit_ms: grade_seconds * 1_000 };
}

/** Time to start and fill a sandbox, beyond the limit of the command itself. If this too is over, the backend hangs, not the tests. */
const aroundSeconds = 120;

/** Returns the seconds that a whole grading may take. */
export function wholeSeconds({ grade_seconds }: Pick<Limits, "grade_seconds">): number {
  return grade_seconds + aroundSeconds;
}

/**
 * Returns the clock that came closer to its limit: the grader's own, or that of the whole grading. A grader without a clock in
 * its evidence counts as running all the time.
 */
export function clockOf({ evidence, duration_ms }: Pick<Verdict, "evidence" | "duration_ms">, limits: Limits): Clock {
  const own = Clock.safeParse(evidence.clock).data ?? commandClock({ duration_ms }, limits);
  const whole = { took_ms: duration_ms, limit_ms: wholeSeconds(limits) * 1_000 };
  return shareOf(own) >= shareOf(whole) ? own : whole;
}

function shareOf({ took_ms, limit_ms }: Clock): number {
  return took_ms / limit_ms;
}

/** Half of the limit: a machine that is twice as slow for the next grading still ends it in time. */
const insideShare = 0.5;

export function isWellInside(clock: Clock): boolean {
  return shareOf(clock) <= insideShare;
}

/** Returns words for messages: `1.2 of 60 seconds`. */
export function saidClock({ took_ms, limit_ms }: Clock): string {
  return `${(took_ms / 1_000).toFixed(1)} of ${limit_ms / 1_000} seconds`;
}
