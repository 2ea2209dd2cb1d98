/**
 * Calls of a session whose answer did not reach the client whole, by their request. A repeated request is a retry of one of
 * these or of none. Parallel sub-agents may send the same request at once, so one request can have several calls.
 */

import { questionOf } from "../restore/fingerprint.ts";
import type { Call } from "./call.ts";

export class UnansweredCalls {
  readonly #byQuestion = new Map<string, Set<Call>>();

  add(call: Call): void {
    const question = questionOf(call.begun.fingerprint);
    const calls = this.#byQuestion.get(question);
    if (calls) calls.add(call);
    else this.#byQuestion.set(question, new Set([call]));
  }

  /** Call it when the client has the answer, continued from it, or got another call for the same request. */
  delete(call: Call): void {
    const question = questionOf(call.begun.fingerprint);
    const calls = this.#byQuestion.get(question);
    calls?.delete(call);
    if (calls?.size === 0) this.#byQuestion.delete(question);
  }

  has(call: Call): boolean {
    return this.#byQuestion.get(questionOf(call.begun.fingerprint))?.has(call) ?? false;
  }

  /** Calls of this very request, oldest first. */
  withRequest(fingerprint: string): Call[] {
    return this.#alike(fingerprint).filter((call) => call.begun.fingerprint === fingerprint);
  }

  /** Calls of the same request to other models, oldest first. */
  ofOtherModels(fingerprint: string): Call[] {
    return this.#alike(fingerprint).filter((call) => call.begun.fingerprint !== fingerprint);
  }

  clear(): void {
    this.#byQuestion.clear();
  }

  #alike(fingerprint: string): Call[] {
    return [...(this.#byQuestion.get(questionOf(fingerprint)) ?? [])];
  }
}
