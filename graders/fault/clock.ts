/**
 * How long what grades has run, and for how long it may: a grader with a limit puts it into its evidence. By the clocks of
 * the task's own files the end of a work's time is told from that of a slow machine.
 */
import { z } from "zod";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { Limits } from "../../base/schema/task.ts";

export const Clock = z.strictObject({ took_ms: z.number().nonnegative(), limit_ms: z.number().positive() });
export type Clock = z.infer<typeof Clock>;

/** The clock of a command that has all of a task's time for grading. */
export function commandClock({ duration_ms }: { duration_ms: number }, { grade_seconds }: Pick<Limits, "grade_seconds">): Clock {
  return { took_ms: duration_ms, limit_ms: grade_seconds * 1_000 };
}

/** Beyond a command's own limit: starting and filling a sandbox. After that the backend hangs, not the tests. */
const aroundSeconds = 120;

/** Seconds that a whole grading may take. */
export function wholeSeconds({ grade_seconds }: Pick<Limits, "grade_seconds">): number {
  return grade_seconds + aroundSeconds;
}

/**
 * The nearer one of two limits: that of what grades, and that of the whole grading. A grader that puts no clock into its
 * evidence was at work all the time.
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

/** For messages: `1.2 of 60 seconds`. */
export function saidClock({ took_ms, limit_ms }: Clock): string {
  return `${(took_ms / 1_000).toFixed(1)} of ${limit_ms / 1_000} seconds`;
}
