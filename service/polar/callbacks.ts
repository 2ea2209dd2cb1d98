/**
 * Addresses of trainers that are sent a set's answer once, when it is over. In memory alone: after a restart, and after a call
 * that failed, the trainer's own polling finds the answer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import type { Ledger } from "../ledger/index.ts";
import { postSigned, refusedAddress } from "../webhooks/post-signed.ts";

type Callback = { url: string; namespace: string; answer: () => Promise<string> };

/** Addresses of one namespace: each is looked at every second. A bridge has the tasks of some training steps under way. */
const mostWaiting = 2_000;
/** Sets that are over within it are found by one look. */
const defaultPauseMs = 1_000;

export class Callbacks implements AsyncDisposable {
  readonly #ledger: Ledger;
  readonly #mayBePrivate: boolean;
  readonly #note: (text: string) => void;
  readonly #stop = new AbortController();
  readonly #waiting = new Map<string, Callback>();
  readonly #calls = new Set<Promise<void>>();
  readonly #work: Promise<void>;

  /** `note` hears of each call that failed. */
  constructor(ledger: Ledger, mayBePrivate: boolean, note: (text: string) => void, pauseMs = defaultPauseMs) {
    this.#ledger = ledger;
    this.#mayBePrivate = mayBePrivate;
    this.#note = note;
    this.#work = this.#watch(pauseMs, this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#work, ...this.#calls]);
  }

  /** Throws `request_invalid` for an address that we never call, and `too_many_requests` if too many callbacks of the namespace wait. */
  assertMayCall(url: string, namespace: string): void {
    const waiting = [...this.#waiting.values()].filter((one) => one.namespace === namespace).length;
    if (waiting >= mostWaiting)
      throw new AlidadeError(
        "too_many_requests",
        `callback_url: ${mostWaiting} tasks of this namespace wait for their call: submit more when some are over, or without callback_url`,
        { param: "callback_url", retryAfterSeconds: 5 },
      );
    const refusal = refusedAddress(url, this.#mayBePrivate);
    if (refusal !== null) throw new AlidadeError("request_invalid", `callback_url ${refusal}`, { param: "callback_url" });
  }

  /** A second address of a set takes the first one's place. */
  add(set: string, callback: Callback): void {
    this.#waiting.set(set, callback);
  }

  async #watch(pauseMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted)
      try {
        for (const [set, callback] of this.#waiting) if (await this.#ledger.isOver(set)) this.#begin(set, callback, signal);
        await sleep(pauseMs, undefined, { signal, ref: false });
      } catch (error) {
        if (signal.aborted) return;
        this.#note(`callbacks wait: ${messageOf(error)}`);
        await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
      }
  }

  #begin(set: string, { url, answer }: Callback, signal: AbortSignal): void {
    this.#waiting.delete(set);
    const call = this.#call(url, answer, signal).finally(() => this.#calls.delete(call));
    this.#calls.add(call);
  }

  async #call(url: string, answer: () => Promise<string>, signal: AbortSignal): Promise<void> {
    try {
      await postSigned({ url, secret: null, mayBePrivate: this.#mayBePrivate }, await answer(), signal);
    } catch (error) {
      if (!signal.aborted) this.#note(messageOf(error));
    }
  }
}
