/** The logprobs that a trainer tells of, by call. They are held until all trajectories were read. */
import type { AlidadeError } from "../../base/errors.ts";
import type { TrainerLogprobs } from "./trainer-logprobs.ts";

/** A list of numbers with a null among them takes some 24 bytes each. */
const mostLogprobs = 50_000_000;
const mostCalls = 1_000_000;

export class GivenLogprobs {
  readonly #given = new Map<string, TrainerLogprobs>();
  readonly #refused: (message: string) => AlidadeError;
  #told = 0;

  /** `refused`: the error for what the trainer says and cannot be. */
  constructor(refused: (message: string) => AlidadeError) {
    this.#refused = refused;
  }

  /** Keeps `one`. Throws where it is too much, and where a call is told of two policy versions. */
  tell(one: TrainerLogprobs): void {
    this.#told += one.logprobs.length;
    if (this.#told > mostLogprobs || this.#given.size >= mostCalls)
      throw this.#refused(`there are more than ${mostLogprobs} logprobs or ${mostCalls} calls: give a part of them`);
    const known = this.#given.get(one.call_id);
    if (known === undefined) this.#given.set(one.call_id, one);
    else this.#join(known, one);
  }

  get calls(): ReadonlyMap<string, TrainerLogprobs> {
    return this.#given;
  }

  /** Rows of several lines may each have a part of a call. In place: a copy for each line would cost its lines times its length. */
  #join(known: TrainerLogprobs, { call_id, policy_version, logprobs }: TrainerLogprobs): void {
    const versions = [known.policy_version, policy_version].filter((version) => version !== null);
    if (new Set(versions).size > 1) throw this.#refused(`call ${call_id} is told of two policy versions: ${versions.join(", ")}`);
    known.policy_version = versions[0] ?? null;
    for (const [at, logprob] of logprobs.entries()) known.logprobs[at] = logprob ?? known.logprobs[at] ?? null;
  }
}
