/**
 * The calls of a session that no client has got whole, by what they ask: a request that comes again is a retry of one
 * of these or of none. Parallel sub-agents ask the same at the same time, so there may be several.
 */
import type { Call } from "./call.ts";

export class UnansweredCalls {
  readonly #byFingerprint = new Map<string, Set<Call>>();

  add(call: Call): void {
    const { fingerprint } = call.begun;
    const calls = this.#byFingerprint.get(fingerprint);
    if (calls) calls.add(call);
    else this.#byFingerprint.set(fingerprint, new Set([call]));
  }

  /** Its client has the answer, or went on from it, or asked again and got another call for it. */
  delete(call: Call): void {
    const { fingerprint } = call.begun;
    const calls = this.#byFingerprint.get(fingerprint);
    calls?.delete(call);
    if (calls?.size === 0) this.#byFingerprint.delete(fingerprint);
  }

  /** Oldest first. */
  asking(fingerprint: string): Call[] {
    return [...(this.#byFingerprint.get(fingerprint) ?? [])];
  }

  clear(): void {
    this.#byFingerprint.clear();
  }
}
