/**
 * INIT, RUN and POST are separate lines, so that a prepared sandbox always waits for a free run slot and grading never
 * holds one.
 */
import { Limiter } from "../base/host/limiter.ts";

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
  /** The places of agents that evaluations alone may have; null: there are none. */
  readonly evaluation: Slots | null;
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

/**
 * `evaluation`: how many of `run` evaluations alone may have, which are fewer than all. Their sandboxes are prepared, and their
 * works graded, in one line with the others.
 */
export function makeSlots({ init, run, post, rollouts = Number.POSITIVE_INFINITY, ahead = 1 }: Concurrency, evaluation = 0): Slots {
  const shared = { rollout: new Limiter(rollouts), init: new Limiter(init), post: new Limiter(post) };
  const agents = (most: number, ready: number) => ({ ...shared, sandbox: new Limiter(most + ready), run: new Limiter(most) });
  return {
    ...agents(run - evaluation, ahead),
    // Work that waits for its grading is held in memory, so a longer line than this holds the next agents back.
    atOnce: Math.min(rollouts, run - evaluation + ahead + 2 * post),
    // As many again are graded.
    evaluation: evaluation === 0 ? null : { ...agents(evaluation, 0), atOnce: 2 * evaluation, evaluation: null },
  };
}
