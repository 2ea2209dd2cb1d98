/**
 * INIT, RUN and POST are separate lines, so that a prepared sandbox always waits for a free run slot and grading never
 * holds one.
 */
import { Limiter } from "../sandboxes/limiter.ts";

export type Slots = {
  /** Sandboxes that exist at once: the running ones, and those prepared ahead. */
  readonly sandbox: Limiter;
  readonly init: Limiter;
  readonly run: Limiter;
  readonly post: Limiter;
};

/** One sandbox is prepared ahead of the running ones: more would only hold memory while they wait. */
const preparedAhead = 1;

export function makeSlots(concurrency: { init: number; run: number; post: number }): Slots {
  return {
    sandbox: new Limiter(concurrency.run + preparedAhead),
    init: new Limiter(concurrency.init),
    run: new Limiter(concurrency.run),
    post: new Limiter(concurrency.post),
  };
}
