/** A trainer's recomputed logprobs, held against the calls of stored trajectories. */
import type { AlidadeError } from "../../base/errors.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { countBy } from "../count-by.ts";
import { type AttributedDrift, attributeDrift } from "./attribute-drift.ts";
import { type CallDrift, driftOf } from "./call-drift.ts";
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

/** They are held until all trajectories were read. A list of numbers with a null among them takes some 24 bytes each. */
const mostLogprobs = 50_000_000;
const mostCalls = 1_000_000;

export class Drift {
  readonly #given = new Map<string, TrainerLogprobs>();
  readonly #tolerance: number;
  readonly #refused: (message: string) => AlidadeError;
  readonly #calls: CallDrift[] = [];
  #told = 0;

  /** `tolerance`: nats. `refused`: the error for what the trainer says and cannot be. */
  constructor(tolerance: number, refused: (message: string) => AlidadeError) {
    this.#tolerance = tolerance;
    this.#refused = refused;
  }

  /** Before the first trajectory; keeps `one`. Throws where it is too much, and where a call is told of two policy versions. */
  tell(one: TrainerLogprobs): void {
    this.#told += one.logprobs.length;
    if (this.#told > mostLogprobs || this.#given.size >= mostCalls)
      throw this.#refused(`there are more than ${mostLogprobs} logprobs or ${mostCalls} calls: give a part of them`);
    const known = this.#given.get(one.call_id);
    if (known === undefined) this.#given.set(one.call_id, one);
    else this.#join(known, one);
  }

  add(trajectory: Trajectory): void {
    for (const one of driftOf(trajectory, this.#given, this.#tolerance)) this.#calls.push(one);
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
      unknown_calls: this.#given.size - new Set(calls.map(({ call_id }) => call_id)).size,
      calls,
    };
  }

  /** Rows of several lines may each have a part of a call. In place: a copy for each line would cost its lines times its length. */
  #join(known: TrainerLogprobs, { call_id, policy_version, logprobs }: TrainerLogprobs): void {
    const versions = [known.policy_version, policy_version].filter((version) => version !== null);
    if (new Set(versions).size > 1) throw this.#refused(`call ${call_id} is told of two policy versions: ${versions.join(", ")}`);
    known.policy_version = versions[0] ?? null;
    for (const [at, logprob] of logprobs.entries()) known.logprobs[at] = logprob ?? known.logprobs[at] ?? null;
  }
}
