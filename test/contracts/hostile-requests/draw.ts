/** Seeded draws: the same seed draws the same, so that a failure can be played again (ids and times are new each time). */
import { SeededRandom } from "../../../practice/model/random.ts";

export class Draw {
  readonly #random: SeededRandom;

  constructor(...seed: number[]) {
    this.#random = new SeededRandom(...seed);
  }

  /** True in this share of the draws. */
  chance(share: number): boolean {
    return this.#random.uniform() < share;
  }

  /** A natural number below `limit`. */
  below(limit: number): number {
    return Math.floor(this.#random.uniform() * limit);
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}
