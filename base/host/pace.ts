/** So much a second over time, and some at once: what is taken beyond that is owed, and waited for. */
export class Pace {
  readonly #perSecond: number;
  readonly #atOnce: number;
  #level: number;
  #seen = performance.now();

  constructor(perSecond: number, atOnce: number) {
    this.#perSecond = perSecond;
    this.#atOnce = atOnce;
    this.#level = atOnce;
  }

  /** Takes it. Milliseconds until it is no longer owed; 0 where it is not. */
  take(amount: number): number {
    this.#refill();
    this.#level -= amount;
    return this.owedMs;
  }

  /** Takes back what was not used in the end. */
  giveBack(amount: number): void {
    this.#level = Math.min(this.#atOnce, this.#level + amount);
  }

  get owedMs(): number {
    this.#refill();
    return Math.max(0, (-this.#level / this.#perSecond) * 1000);
  }

  #refill(): void {
    const now = performance.now();
    this.#level = Math.min(this.#atOnce, this.#level + ((now - this.#seen) / 1000) * this.#perSecond);
    this.#seen = now;
  }
}
