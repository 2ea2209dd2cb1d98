/**
 * INIT, RUN and POST are separate lines, so that a prepared sandbox always waits for a free run slot and grading never
 * holds one.
 */
import { Limiter } from "../host/limiter.ts";

export type Slots = {
  /** Rollouts that keep all of these busy: those with a sandbox, those that are graded, and as many that wait for that. */
  readonly atOnce: number;
  /** Rollouts that have a sandbox, an agent's or a grader's: any number, or one where the machine holds no two sandboxes. */
  readonly rollout: Limiter;
  /** Agents' sandboxes that exist at once: the running ones, and those prepared ahead. */
  readonly sandbox: Limiter;
  readonly init: Limiter;
  readonly run: Limiter;
  readonly post: Limiter;
};

export type Concurrency = {
  init: number;
  run: number;
  post: number;
  /** Rollouts that have a sandbox; any number where left out. */
  rollouts?: number;
  /** Sandboxes prepared while others run: one. More would only hold memory while they wait. */
  ahead?: number;
};

export function makeSlots({ init, run, post, rollouts = Number.POSITIVE_INFINITY, ahead = 1 }: Concurrency): Slots {
  return {
    // Work that waits for its grading is held in memory, so a longer line than this holds the next agents back.
    atOnce: Math.min(rollouts, run + ahead + 2 * post),
    rollout: new Limiter(rollouts),
    sandbox: new Limiter(run + ahead),
    init: new Limiter(init),
    run: new Limiter(run),
    post: new Limiter(post),
  };
}
