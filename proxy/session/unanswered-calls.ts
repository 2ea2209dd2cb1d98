/**
 * The calls of a session that no client has got whole, by what they ask: a request that comes again is a retry of one
 * of these or of none. Parallel sub-agents ask the same at the same time, so there may be several.
 */
import type { Call } from "../calls/call.ts";
import { questionOf } from "../restore/fingerprint.ts";

export class UnansweredCalls {
  readonly #byQuestion = new Map<string, Set<Call>>();

  add(call: Call): void {
    const question = questionOf(call.begun.fingerprint);
    const calls = this.#byQuestion.get(question);
    if (calls) calls.add(call);
    else this.#byQuestion.set(question, new Set([call]));
  }

  /** Its client has the answer, or went on from it, or asked again and got another call for it. */
  delete(call: Call): void {
    const question = questionOf(call.begun.fingerprint);
    const calls = this.#byQuestion.get(question);
    calls?.delete(call);
    if (calls?.size === 0) this.#byQuestion.delete(question);
  }

  has(call: Call): boolean {
    return this.#byQuestion.get(questionOf(call.begun.fingerprint))?.has(call) ?? false;
  }

  /** Oldest first. */
  asking(fingerprint: string): Call[] {
    return this.#alike(fingerprint).filter((call) => call.begun.fingerprint === fingerprint);
  }

  /** Those that ask other models the same. Oldest first. */
  askingOthers(fingerprint: string): Call[] {
    return this.#alike(fingerprint).filter((call) => call.begun.fingerprint !== fingerprint);
  }

  clear(): void {
    this.#byQuestion.clear();
  }

  #alike(fingerprint: string): Call[] {
    return [...(this.#byQuestion.get(questionOf(fingerprint)) ?? [])];
  }
}
