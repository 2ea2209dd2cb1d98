/**
 * A node that cannot renew its lease shuts its own gates before the lease is over: the others may be told by then that it has
 * drained. Half a lease is three beats; what still runs at five sixths is cancelled, which an engine does within seconds.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { EnginePool } from "../../proxy/pool/index.ts";
import type { Lease } from "../ledger/index.ts";

const shutAfter = 1 / 2;
const cancelAfter = 5 / 6;

/** The hold of its gates. */
const lapsed = "lease";

export class LeaseGuard implements Disposable {
  readonly #pool: EnginePool;
  readonly #note: (text: string) => void;
  #timers: NodeJS.Timeout[] = [];
  #isShut = false;

  constructor(pool: EnginePool, note: (text: string) => void) {
    this.#pool = pool;
    this.#note = note;
  }

  /** `askedAt`: of `performance.now()`, before the ledger was asked. An answer that took half a lease opens nothing. */
  renewed({ seconds }: Lease, askedAt: number): void {
    this.#disarm();
    const age = performance.now() - askedAt;
    const left = (share: number): number => Math.max(0, seconds * 1000 * share - age);
    if (left(shutAfter) > 0) this.#open();
    this.#timers = [
      setTimeout(() => this.#shut("no sign of life reached the ledger for half a lease"), left(shutAfter)),
      setTimeout(() => this.#cancel(), left(cancelAfter)),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  /** The node has a lease that cannot lapse. */
  opened(): void {
    this.#disarm();
    this.#open();
  }

  /** The ledger has taken the node for dead. */
  lost(): void {
    this.#disarm();
    this.#shut("the lease is over");
    this.#cancel();
  }

  [Symbol.dispose](): void {
    this.#disarm();
  }

  #shut(why: string): void {
    if (this.#isShut) return;
    this.#isShut = true;
    for (const slot of this.#pool.slots) slot.shut({ fence: lapsed, since: Date.now(), why: "the renewal of their node's lease" });
    this.#note(`${why}: nothing is sampled until the lease is renewed`);
  }

  #cancel(): void {
    const error = new AlidadeError("engine_paused", "the generation was cancelled, for the node could not renew its lease: try again");
    for (const slot of this.#pool.slots) slot.cancelAll(error);
  }

  #open(): void {
    if (!this.#isShut) return;
    this.#isShut = false;
    for (const slot of this.#pool.slots) slot.open(lapsed);
    this.#pool.changed();
    this.#note("the lease is renewed, calls are flowing again");
  }

  #disarm(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers = [];
  }
}
