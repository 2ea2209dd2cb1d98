/**
 * Whether calls go to an engine while there are others. A streak of failed calls is no evidence against it, for a client
 * may send what no engine stands; it is the reason to ask the engine a question of our own (canary.ts), and the answer to
 * that opens the breaker.
 */

/** One failure may be chance (a socket that was closed, a crash of one request). */
const failuresToAsk = 3;

export class CircuitBreaker {
  #failures = 0;
  #openSince: number | null = null;
  #isChecking = false;

  get isOpen(): boolean {
    return this.#openSince !== null;
  }

  /** Unix milliseconds; null while it is closed. */
  get openSince(): number | null {
    return this.#openSince;
  }

  /** The engine answered some call well. */
  close(): void {
    this.#failures = 0;
    this.#openSince = null;
  }

  /** A call failed. True when the engine must be probed; the caller must report the result to `checked`. */
  failed(): boolean {
    this.#failures++;
    if (this.isOpen || this.#isChecking || this.#failures < failuresToAsk) return false;
    this.#isChecking = true;
    return true;
  }

  /** The result of that question. True when it opened the breaker. */
  checked(isWell: boolean): boolean {
    this.#isChecking = false;
    if (isWell) this.close();
    else this.#openSince ??= Date.now();
    return !isWell;
  }
}
