/** What goes on in a session in this process, and is gone with it: its log knows nothing of it yet. */
import { untilAborted } from "../../base/host/until-aborted.ts";
import { withinTime } from "../../base/host/within-time.ts";
import type { Tried } from "../../base/schema/session-log.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { ServedBy } from "../pool/engine-slot.ts";
import type { Call } from "./call.ts";
import { CallRun } from "./call-run.ts";

/** A connection that waits for an answer. */
export type WaitingClient = { readonly closed: Promise<void>; readonly isClosed: boolean };

/** A seal waits so long for answers that are on their way out: a client that does not read must not hold it. */
const answersMs = 5_000;

export class Running {
  readonly #sandboxed: boolean;
  readonly #runs = new Map<Call, CallRun>();
  readonly #clients = new WeakMap<Call, Set<WaitingClient>>();
  readonly #served = new Map<Call, ServedBy>();
  /** Calls of which a client has the whole answer, before the log says so. */
  readonly #arrived = new Set<Call>();
  readonly #background = new Set<Promise<void>>();
  readonly #answering = new Set<Promise<void>>();

  constructor({ sandboxed }: Pick<SessionSpec, "sandboxed">) {
    this.#sandboxed = sandboxed;
  }

  /** At once among those that run: two equal requests at once see each other's call and client. */
  start(call: Call): CallRun {
    const run = new CallRun(call, () => this.#runs.delete(call));
    this.#runs.set(call, run);
    return run;
  }

  /** null: it is over, or ran in another process. */
  of(call: Call): CallRun | null {
    return this.#runs.get(call) ?? null;
  }

  /** Calls of which it is not known yet what came of them. */
  inFlight(): CallRun[] {
    return this.all().filter((run) => !run.isUnsaved);
  }

  get isBusy(): boolean {
    return this.#runs.size > 0;
  }

  /** The same with those that could not be written down. */
  all(): CallRun[] {
    return [...this.#runs.values()];
  }

  tries(): [Call, Tried][] {
    return this.all().flatMap(({ call, tries }) => tries.map((tried): [Call, Tried] => [call, tried]));
  }

  /** The client waits for the call's answer; several may. */
  join(call: Call, client: WaitingClient): void {
    const clients = this.#clients.get(call) ?? new Set();
    this.#clients.set(call, clients.add(client));
    this.#watched(call);
  }

  leave(call: Call, client: WaitingClient): void {
    this.#clients.get(call)?.delete(client);
    this.#watched(call);
  }

  isWaitedFor(call: Call): boolean {
    return this.clientsOf(call).some((client) => !client.isClosed);
  }

  clientsOf(call: Call): WaitingClient[] {
    return [...(this.#clients.get(call) ?? [])];
  }

  /** Until `noting` is over its answer is taken as arrived. */
  async arrived(call: Call, noting: Promise<void>): Promise<void> {
    this.#arrived.add(call);
    try {
      await noting;
    } finally {
      this.#arrived.delete(call);
    }
  }

  hasArrived(call: Call): boolean {
    return this.#arrived.has(call);
  }

  /** The engine of the call's last try. */
  servedBy(call: Call, served: ServedBy): void {
    this.#served.set(call, served);
  }

  /** null: no engine was entered, or by another process. */
  serverOf(call: Call): ServedBy | null {
    return this.#served.get(call) ?? null;
  }

  /** The engine that took the latest call. */
  lastServer(): ServedBy | null {
    return [...this.#served.values()].at(-1) ?? null;
  }

  /** Work that goes on after an answer has left; a seal waits for it. */
  inBackground(work: Promise<void>): void {
    const tracked: Promise<void> = work.finally(() => this.#background.delete(tracked));
    this.#background.add(tracked);
  }

  /** A request that is being answered: how it ended is part of the log, so a seal waits for it. */
  async answering(answering: Promise<void>): Promise<void> {
    this.#answering.add(answering);
    try {
      await answering;
    } finally {
      this.#answering.delete(answering);
    }
  }

  /** Waits until all that is being sampled now is sampled and in the log. Rejects with the signal's reason. */
  async callsEnded(signal?: AbortSignal): Promise<void> {
    const ended = Promise.allSettled(this.inFlight().map((run) => run.settled));
    await (signal ? untilAborted(ended, signal) : ended);
  }

  /** Waits until it is known how its answers ended; not for long where a client does not read. */
  answersEnded(): Promise<void> {
    return withinTime(Promise.allSettled(this.#answering), answersMs);
  }

  /** Writes down what could not be written before. Throws where it still cannot. */
  async saveAll(): Promise<void> {
    for (const run of this.all()) await run.saved();
  }

  async backgroundEnded(): Promise<void> {
    while (this.#background.size > 0) await Promise.allSettled(this.#background);
  }

  /** Nothing of it is under way any more. */
  async idle(): Promise<void> {
    while (this.#answering.size + this.#background.size > 0) await Promise.allSettled([...this.#answering, ...this.#background]);
  }

  clear(): void {
    this.#served.clear();
  }

  /** A generation that is left by all its clients is given up after a while; not a sandbox's, for its agent would leave the turns that it does not want to be trained on. */
  #watched(call: Call): void {
    if (!this.#sandboxed) this.of(call)?.generation?.watched(this.#clients.get(call)?.size ?? 0);
  }
}
