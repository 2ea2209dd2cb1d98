import type { PhaseSeconds } from "./index-file.ts";

/** Turns the times of a rollout's steps (Unix milliseconds) into the seconds of its phases. */
export function phaseSeconds({ queued, init, run, post, teach, done }: Record<string, number>): PhaseSeconds {
  return {
    queue: between(queued, init ?? done),
    init: between(init, run ?? teach ?? done),
    run: between(run, post ?? teach ?? done),
    grade: between(post, teach ?? done),
    teach: between(teach, done),
  };
}

export function between(from: number | undefined, to: number | undefined): number | null {
  return from === undefined || to === undefined ? null : (to - from) / 1000;
}
