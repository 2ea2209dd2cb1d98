/** A trainer's recomputed logprobs, held against the calls of stored trajectories. */
import type { AlidadeError } from "../../base/errors.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { countBy } from "../count-by.ts";
import { type AttributedDrift, attributeDrift } from "./attribute-drift.ts";
import { type CallDrift, driftOf } from "./call-drift.ts";
import { GivenLogprobs } from "./given-logprobs.ts";
import type { TrainerLogprobs } from "./trainer-logprobs.ts";

export type DriftSummary = {
  tolerance: number;
  compared: number;
  /** |recorded - recomputed| over all compared tokens, in nats; null where nothing was compared. */
  mean: number | null;
  max: number | null;
  /** Cause -> calls. */
  causes: Record<string, number>;
  /** Reason -> calls that could not be compared. */
  not_comparable: Record<string, number>;
  /** Calls that the trainer tells of and that no trajectory has. */
  unknown_calls: number;
  calls: AttributedDrift[];
};

export class Drift {
  readonly #given: GivenLogprobs;
  readonly #tolerance: number;
  readonly #calls: CallDrift[] = [];

  /** `tolerance`: nats. `refused`: the error for what the trainer says and cannot be. */
  constructor(tolerance: number, refused: (message: string) => AlidadeError) {
    this.#tolerance = tolerance;
    this.#given = new GivenLogprobs(refused);
  }

  /** Before the first trajectory; keeps `one`. Throws where it is too much, and where a call is told of two policy versions. */
  tell(one: TrainerLogprobs): void {
    this.#given.tell(one);
  }

  add(trajectory: Trajectory): void {
    for (const one of driftOf(trajectory, this.#given.calls, this.#tolerance)) this.#calls.push(one);
  }

  get summary(): DriftSummary {
    const calls = attributeDrift(this.#calls);
    const compared = calls.reduce((sum, call) => sum + call.compared, 0);
    const total = calls.reduce((sum, call) => sum + (call.mean ?? 0) * call.compared, 0);
    return {
      tolerance: this.#tolerance,
      compared,
      mean: compared === 0 ? null : total / compared,
      max: compared === 0 ? null : calls.reduce((most, { max }) => Math.max(most, max?.difference ?? 0), 0),
      causes: countBy(calls, ({ cause }) => cause),
      not_comparable: countBy(calls, (call) => call.not_comparable),
      unknown_calls: this.#given.calls.size - new Set(calls.map(({ call_id }) => call_id)).size,
      calls,
    };
  }
}
