/**
 * Things that take a while to make, lent out as scopes; it knows nothing of what they are. A thing is used once: what
 * comes back is disposed of, for nobody can say what was done to it.
 *
 *     const pool = new Pool({ create: (signal) => backend.create(spec, signal), max: 8, prewarm: 2 });
 *     await using lease = await pool.acquire(signal);
 *     await lease.value.exec(["true"]);
 */
import { Limiter } from "../host/limiter.ts";

export type PoolOptions<T extends AsyncDisposable> = {
  create: (signal: AbortSignal) => Promise<T>;
  /** Things that exist at once, lent or ready. */
  max: number;
  /** Things kept ready beyond those that are lent. */
  prewarm?: number;
};

export type PoolCounters = { ready: number; creating: number; lent: number; waiting: number; created: number; failed: number };

export interface Lease<T> extends AsyncDisposable {
  readonly value: T;
}

export class Pool<T extends AsyncDisposable> implements AsyncDisposable {
  readonly #options: Required<PoolOptions<T>>;
  /** One place for each lease, from before its thing is made until after it is gone. */
  readonly #places: Limiter;
  readonly #closing = new AbortController();
  /** Ready, or on the way to be. */
  readonly #prepared: Prepared<T>[] = [];
  readonly #creating = new Set<Promise<T>>();
  #lent = 0;
  #created = 0;
  #failed = 0;

  constructor(options: PoolOptions<T>) {
    this.#options = { prewarm: 0, ...options };
    this.#places = new Limiter(options.max);
    this.#prepare();
  }

  get counters(): PoolCounters {
    return {
      ready: this.#prepared.filter(({ state }) => state === "ready").length,
      creating: this.#creating.size,
      lent: this.#lent,
      waiting: this.#places.counters.waiting,
      created: this.#created,
      failed: this.#failed,
    };
  }

  /** Waits for a place, then takes a prepared thing or makes one. Throws what `create` throws, and the place is free again. */
  async acquire(signal: AbortSignal): Promise<Lease<T>> {
    const either = AbortSignal.any([signal, this.#closing.signal]);
    const freePlace = await this.#places.enter(either);
    try {
      const value = await this.#take(either);
      this.#lent += 1;
      this.#prepare();
      let releasing: Promise<void> | null = null;
      return {
        value,
        [Symbol.asyncDispose]: () => {
          releasing ??= this.#release(value, freePlace);
          return releasing;
        },
      };
    } catch (error) {
      freePlace();
      throw error;
    }
  }

  /** No new leases; what is prepared is disposed of. Leases that are out end with their own scopes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("The pool is closed"));
    const left = this.#prepared.splice(0).map(async ({ value }) => (await value)[Symbol.asyncDispose]());
    await Promise.allSettled(left);
  }

  async #release(value: T, freePlace: () => void): Promise<void> {
    try {
      await value[Symbol.asyncDispose]();
    } finally {
      this.#lent -= 1;
      freePlace();
      this.#prepare();
    }
  }

  async #take(signal: AbortSignal): Promise<T> {
    const prepared = this.#prepared.shift();
    if (prepared === undefined) return this.#create(signal);
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      return await Promise.race([prepared.value, aborted.promise]);
    } catch (error) {
      if (!signal.aborted) throw error;
      // Still good for the next one; after closing there is none.
      if (this.#closing.signal.aborted) void prepared.value.then((value) => value[Symbol.asyncDispose]()).catch(() => {});
      else this.#prepared.unshift(prepared);
      throw error;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  #create(signal: AbortSignal): Promise<T> {
    const creating = this.#options.create(signal);
    this.#creating.add(creating);
    creating.then(
      () => {
        this.#creating.delete(creating);
        this.#created += 1;
      },
      () => {
        this.#creating.delete(creating);
        this.#failed += 1;
      },
    );
    return creating;
  }

  /** One that fails is not tried again here: the next acquire shows the error to somebody who can act on it. */
  #prepare(): void {
    const { prewarm, max } = this.#options;
    while (this.#prepared.length < prewarm && this.#places.counters.active + this.#prepared.length < max) {
      if (this.#closing.signal.aborted) return;
      const prepared: Prepared<T> = { value: this.#create(this.#closing.signal), state: "creating" };
      this.#prepared.push(prepared);
      prepared.value.then(
        () => {
          prepared.state = "ready";
        },
        () => {
          const index = this.#prepared.indexOf(prepared);
          if (index !== -1) this.#prepared.splice(index, 1);
        },
      );
    }
  }
}

type Prepared<T> = { value: Promise<T>; state: "creating" | "ready" };
