import type { PhaseSeconds } from "./index-file.ts";

/** Turns the times of a rollout's steps (Unix milliseconds) into the seconds of its phases. */
export function phaseSeconds({ queued, init, run, post, done }: Record<string, number>): PhaseSeconds {
  return {
    queue: between(queued, init ?? done),
    init: between(init, run ?? done),
    run: between(run, post ?? done),
    grade: between(post, done),
  };
}

export function between(from: number | undefined, to: number | undefined): number | null {
  return from === undefined || to === undefined ? null : (to - from) / 1000;
}
