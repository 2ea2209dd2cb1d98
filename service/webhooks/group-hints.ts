/**
 * Tells webhooks that a set has more whole groups. A hint and no delivery: results are read by cursor as ever, and what happens
 * while a receiver is told is one hint afterwards. So a receiver that is slow or away delays its own hints alone.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../base/errors.ts";
import { Limiter } from "../../base/host/limiter.ts";
import type { Ledger, SetState } from "../ledger/index.ts";
import { HintLine, longestPauseMs } from "./hint-line.ts";
import type { Webhook } from "./post-signed.ts";

/** Groups that become whole within a second are one hint. */
const defaultPauseMs = 1_000;
/** A trainer may name an address that hangs for each of its sets. It delays those of its own namespace, and never the service's. */
const requestsAtOnce = 16;
/** For an address that a trainer chose: about three minutes. */
const mostTries = 8;

export type HintAddresses = {
  /** It is told of every set; null: there is none. */
  service: Webhook | null;
  /** How addresses are told that sets name; null: the operator does not allow them. */
  sets: Omit<Webhook, "url"> | null;
};

export class GroupHints implements AsyncDisposable {
  readonly #ledger: Ledger;
  readonly #addresses: HintAddresses;
  readonly #note: (text: string) => void;
  readonly #pauseMs: number;
  readonly #stop = new AbortController();
  /** By the namespace. */
  readonly #places = new Map<string, Limiter>();
  readonly #service: HintLine | null;
  /** By namespace and address: what one namespace is told delays no other one that named the same address. */
  readonly #ofSets = new Map<string, HintLine>();
  readonly #work: Promise<void>;

  /** `note` hears of the first failure in a row. */
  constructor(ledger: Ledger, addresses: HintAddresses, note: (text: string) => void, pauseMs = defaultPauseMs) {
    this.#ledger = ledger;
    this.#addresses = addresses;
    this.#note = note;
    this.#pauseMs = pauseMs;
    this.#service = addresses.service && this.#lineTo(addresses.service, Number.POSITIVE_INFINITY, new Limiter(1));
    this.#work = this.#watch(this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#work;
    await Promise.all([this.#service, ...this.#ofSets.values()].map((line) => line?.ended));
  }

  async #watch(signal: AbortSignal): Promise<void> {
    let pause = this.#pauseMs;
    for (let isFirst = true; !signal.aborted; ) {
      const seen = this.#ledger.version;
      try {
        for (const set of await this.#ledger.sets()) for (const line of this.#linesOf(set)) line.look(set, isFirst);
        isFirst = false;
        pause = this.#pauseMs;
        await sleep(pause, undefined, { signal, ref: false });
        await this.#ledger.changed(seen, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (pause === this.#pauseMs) this.#note(`webhooks wait: ${messageOf(error)}`);
        pause = Math.min(pause * 2, longestPauseMs);
        await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }

  #linesOf({ spec, namespace }: SetState): HintLine[] {
    const own = this.#service === null ? [] : [this.#service];
    const { sets } = this.#addresses;
    if (spec.webhook === undefined || sets === null) return own;
    const name = `${namespace} ${spec.webhook}`;
    const places = this.#places.get(namespace) ?? new Limiter(requestsAtOnce);
    this.#places.set(namespace, places);
    const line = this.#ofSets.get(name) ?? this.#lineTo({ ...sets, url: spec.webhook }, mostTries, places);
    this.#ofSets.set(name, line);
    return [...own, line];
  }

  #lineTo(webhook: Webhook, tries: number, places: Limiter): HintLine {
    const { signal } = this.#stop;
    return new HintLine({ ledger: this.#ledger, webhook, note: this.#note, pauseMs: this.#pauseMs, places, tries, signal });
  }
}
