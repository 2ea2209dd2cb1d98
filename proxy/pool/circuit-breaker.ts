/**
 * Whether calls go to an engine while there are others. A streak of failed calls is no evidence against it, for a client
 * may send what no engine stands; it is the reason to ask the engine a question of our own (canary.ts), and the answer to
 * that opens the breaker.
 */

/** One failure may be chance (a socket that was closed, a crash of one request). */
const failuresToAsk = 3;

export class CircuitBreaker {
  #failures = 0;
  #isOpen = false;
  #isAsking = false;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The engine did what it should, for whomever. */
  close(): void {
    this.#failures = 0;
    this.#isOpen = false;
  }

  /** A call failed. True when the engine is to be asked how it is; `asked` must follow then. */
  failed(): boolean {
    this.#failures++;
    if (this.#isOpen || this.#isAsking || this.#failures < failuresToAsk) return false;
    this.#isAsking = true;
    return true;
  }

  /** What came of the question. True when it opened the breaker. */
  asked(isWell: boolean): boolean {
    this.#isAsking = false;
    if (isWell) this.close();
    else this.#isOpen = true;
    return !isWell;
  }
}
