/**
 * Sandboxes that are made before they are asked for. A rollout says which sandbox it will want (`expect`); up to a number
 * of them are made ahead, and `create` hands one out where one of exactly that kind is there.
 *
 *     await using warm = new WarmPool(backend, { sandboxes: 4, seconds: 600 });
 *     using expected = warm.expect(spec);
 *     await using sandbox = await expected.create(spec, signal);
 *
 * Nothing of a rollout ran in a warm sandbox, and one that was handed out never comes back: its lease ends it. It carries owner and
 * lease from its making on, so the reaper finds those of a killed process.
 */
import { availableParallelism } from "node:os";
import { untilAborted } from "../base/host/until-aborted.ts";
import { hashOf } from "../base/schema/ids.ts";
import type { Sandbox, SandboxBackend, SandboxSpec } from "./sandbox.ts";

export type WarmOptions = {
  /** How many are ready or in the making at most. */
  sandboxes: number;
  /** An older one is removed, and made anew where it is still expected. */
  seconds: number;
};

/** A sandbox that will be wanted: `create` ends the wait, and so does the end of the scope where it is not wanted any more. */
export type ExpectedSandbox = Pick<SandboxBackend, "create"> & Disposable;

/** `soon`: before those that are wanted `later`. */
export type Urgency = "soon" | "later";

type WantedSandbox = { key: string; spec: SandboxSpec };
type Warm = { key: string; made: Promise<Sandbox>; state: "making" | "ready"; timer: NodeJS.Timeout };

/** Making one is CPU work of the engine, which the sandboxes that are asked for right now need more. */
const makingAtOnce = Math.max(1, Math.floor(availableParallelism() / 2));

export class WarmPool implements AsyncDisposable {
  readonly #backend: Pick<SandboxBackend, "create">;
  readonly #options: WarmOptions;
  readonly #wishes: WantedSandbox[] = [];
  /** The oldest first. */
  readonly #warm = new Set<Warm>();
  readonly #removals = new Set<Promise<void>>();
  /** Kinds whose last making failed with no rollout waiting for it: the next one meets the error itself. */
  readonly #failed = new Set<string>();
  readonly #stop = new AbortController();

  constructor(backend: Pick<SandboxBackend, "create">, options: WarmOptions) {
    this.#backend = backend;
    this.#options = options;
  }

  get counters(): { ready: number; making: number; expected: number } {
    const making = this.#making;
    return { ready: this.#warm.size - making, making, expected: this.#wishes.length };
  }

  /** Notes a wish, for which a sandbox is made as soon as there is room. */
  expect(spec: SandboxSpec, urgency: Urgency = "soon"): ExpectedSandbox {
    // Those in the sandbox's own network are part of it: they would run, and grow old, for an agent that has not come yet.
    if (Object.values(spec.services ?? {}).some(({ network }) => network === "agent"))
      return { create: (asked, signal) => this.create(asked, signal), [Symbol.dispose]: () => undefined };
    const wish = { key: keyOf(spec), spec };
    this.#failed.delete(wish.key);
    if (urgency === "soon") this.#wishes.unshift(wish);
    else this.#wishes.push(wish);
    this.#balance();
    return {
      create: (asked, signal) => {
        this.#forget(wish);
        return this.create(asked, signal);
      },
      [Symbol.dispose]: () => {
        if (this.#forget(wish)) this.#balance();
      },
    };
  }

  /** A warm sandbox of this very specification, or a new one. */
  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    const key = keyOf(spec);
    for (let warm = this.#take(key); warm !== null; warm = this.#take(key)) {
      this.#balance();
      const sandbox = await this.#handOut(warm, signal);
      if (sandbox !== null) return sandbox;
    }
    this.#balance();
    return this.#backend.create(spec, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#wishes.length = 0;
    for (const warm of this.#warm) this.#remove(warm);
    await Promise.all(this.#removals);
  }

  get #making(): number {
    return [...this.#warm].filter(({ state }) => state === "making").length;
  }

  #forget(wish: WantedSandbox): boolean {
    const at = this.#wishes.indexOf(wish);
    if (at >= 0) this.#wishes.splice(at, 1);
    return at >= 0;
  }

  /** One that is ready, or one that is sooner ready than a new one. */
  #take(key: string): Warm | null {
    const fitting = [...this.#warm].filter((warm) => warm.key === key);
    const taken = fitting.find(({ state }) => state === "ready") ?? fitting[0] ?? null;
    if (taken !== null) this.#drop(taken);
    return taken;
  }

  #drop(warm: Warm): void {
    clearTimeout(warm.timer);
    this.#warm.delete(warm);
  }

  /**
   * null where it is no longer what a new one would be: it died, or its image has changed. One that is waited for and cannot
   * be made fails like one that is made then, for another try would take as long again.
   */
  async #handOut(warm: Warm, signal: AbortSignal): Promise<Sandbox | null> {
    try {
      const sandbox = await untilAborted(warm.made, signal);
      if (await untilAborted(sandbox.isAsNew?.() ?? Promise.resolve(true), signal)) return sandbox;
    } catch (error) {
      this.#remove(warm);
      signal.throwIfAborted();
      throw error;
    }
    this.#remove(warm);
    return null;
  }

  /** Removes what is not expected any more, and makes what is. */
  #balance(): void {
    if (this.#stop.signal.aborted) return;
    const spare = Map.groupBy(this.#warm, ({ key }) => key);
    const lacking = this.#wishes.filter(({ key }) => spare.get(key)?.shift() === undefined && !this.#failed.has(key));
    for (const warm of [...spare.values()].flat()) this.#remove(warm);
    for (const wish of lacking) {
      if (this.#warm.size >= this.#options.sandboxes || this.#making >= makingAtOnce) return;
      this.#make(wish);
    }
  }

  #make({ key, spec }: WantedSandbox): void {
    const tooOld = (): void => {
      this.#remove(warm);
      this.#balance();
    };
    const made = (async () => this.#backend.create(spec, this.#stop.signal))();
    const warm: Warm = { key, made, state: "making", timer: setTimeout(tooOld, this.#options.seconds * 1000).unref() };
    this.#warm.add(warm);
    const ready = (): void => {
      warm.state = "ready";
    };
    const failed = (): void => {
      this.#failed.add(key);
      this.#drop(warm);
    };
    void made.then(ready, failed).then(() => this.#balance());
  }

  #remove(warm: Warm): void {
    this.#drop(warm);
    // What cannot be released is left to the reaper.
    const removal: Promise<void> = warm.made
      .then((sandbox) => sandbox[Symbol.asyncDispose]())
      .catch(() => undefined)
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }
}

/**
 * All that a sandbox is made of, labels of its owner included: those of one kind are the same in everything that a rollout
 * could tell. The door and a command's own variables come after the hand-out.
 */
function keyOf(spec: SandboxSpec): string {
  return hashOf(spec);
}
