/**
 * The last guard of a process that runs works of strangers side by side. An exception that no step awaits (a stream's error
 * without a listener, a callback that throws) would end the process and all works in it. Each work runs under its name, which
 * follows it through every callback: so such an exception ends the one work that it comes from, and its stack is on record.
 *
 *     await using guard = await LastGuard.open(folder, note);
 *     await guard.run("rollout-1#1", (error) => controller.abort(error), () => work(controller.signal));
 *
 * One without a name leaves the process in a state that is not known: it ends, as without a guard, but for the record.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { writeSync } from "node:fs";
import { messageOf } from "../../errors.ts";
import { Limiter } from "../limiter.ts";
import { type CountCalls, DeathRecord } from "./death-record.ts";
import { type Death, nameOf } from "./judge-deaths.ts";

type Work = { guard: LastGuard; attempt: string; fail: (error: unknown) => void };

const running = new AsyncLocalStorage<Work>();
/** Tests open several in one process. */
const guards = new Set<LastGuard>();

export class LastGuard implements AsyncDisposable {
  readonly #record: DeathRecord;
  readonly #note: (text: string) => void;
  /** Suspects run one at a time. */
  readonly #alone = new Limiter(1);
  /** Name -> why it is set aside. */
  aside: ReadonlyMap<string, string>;
  #suspects: ReadonlySet<string>;
  /** Attempts that are not blamed for an earlier death: they waited, or had got further than before. */
  readonly blameless: readonly string[];
  /** Attempts that were ended by an exception. */
  readonly #failed = new Set<string>();

  private constructor(record: DeathRecord, note: (text: string) => void) {
    this.#record = record;
    this.#note = note;
    const { aside, suspects, blameless } = record.judge();
    this.aside = aside;
    this.#suspects = suspects;
    this.blameless = blameless;
  }

  /** The caller holds the lock of `folder`. `countCalls` counts the calls of attempts that ran when a process died. */
  static async open(folder: string, note: (text: string) => void, countCalls?: CountCalls): Promise<LastGuard> {
    const record = await DeathRecord.open(folder, countCalls);
    const guard = new LastGuard(record, note);
    if (record.found !== null) note(guard.#deathText(record.found));
    if (guards.size === 0) process.on("uncaughtException", onUncaught).on("exit", onExit);
    guards.add(guard);
    return guard;
  }

  isSuspect(name: string): boolean {
    return this.#suspects.has(name);
  }

  /** What was set aside may run again; returns the names. */
  forgive(): string[] {
    const names = [...this.aside.keys()];
    this.#record.forgive(names);
    const { aside, suspects } = this.#record.judge();
    this.aside = aside;
    this.#suspects = suspects;
    return names;
  }

  /** Where the stacks are of what ended works and processes. */
  get crashFile(): string {
    return this.#record.crashFile;
  }

  /** Claims an attempt (`name#number`) until the scope ends, without starting it. */
  claim(attempt: string): Disposable {
    this.#record.claims(attempt);
    return { [Symbol.dispose]: () => this.#record.leaves(attempt) };
  }

  /** `fail` gets exceptions of the body that no step of it awaits. Outside of a `step` the attempt counts as waiting. */
  async run<T>(attempt: string, fail: (error: unknown) => void, body: () => Promise<T>): Promise<T> {
    const isOwn = this.#record.claims(attempt);
    try {
      return await running.run({ guard: this, attempt, fail }, body);
    } finally {
      this.#record.rests(attempt);
      if (isOwn) this.#record.leaves(attempt);
    }
  }

  /** Until the scope ends, the attempt counts as running and may be blamed for a death. */
  step(attempt: string): Disposable {
    this.#record.begins(attempt);
    return { [Symbol.dispose]: () => this.#record.rests(attempt) };
  }

  /** Waits until no other suspect runs. Returns what ends the turn. A death of the process meanwhile is not this attempt's doing. */
  async takeTurn(attempt: string, signal: AbortSignal): Promise<() => void> {
    this.#record.queues(attempt);
    try {
      return await this.#alone.enter(signal);
    } finally {
      this.#record.leavesQueue(attempt);
    }
  }

  /** What ended the process is known to the next one. `name`: what it comes from. */
  ends(error: unknown, name: string | null): void {
    this.#record.crashed(error, name, true);
  }

  /** Ends one work; what it throws after that is on record, and no more. */
  contains(error: unknown, { attempt, fail }: Work): void {
    this.#record.crashed(error, attempt, false);
    if (this.#failed.has(attempt)) return;
    this.#failed.add(attempt);
    this.#note(`ALARM: an exception that no step awaited ends ${attempt}, and nothing else: ${messageOf(error)} (${this.crashFile})`);
    fail(error);
  }

  #deathText({ by, why, running: ran, waiting: needy, queued }: Death): string {
    const waiting = [...needy, ...queued];
    const suspects = [...ran, ...waiting].filter((attempt) => this.isSuspect(nameOf(attempt))).length;
    const what = suspects > 0 ? `; its ${suspects} suspects run one at a time now` : "";
    return `the process before ended ${by === "kill" ? "from outside" : "by a crash"} while ${ran.length} rollouts ran${waiting.length > 0 ? ` and ${waiting.length} waited` : ""}: ${why}${what}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    guards.delete(this);
    if (guards.size === 0) process.off("uncaughtException", onUncaught).off("exit", onExit);
    this.#record[Symbol.dispose]();
  }
}

/** Also for rejected promises that nothing awaits: Node hands them on as exceptions. */
function onUncaught(error: unknown): void {
  const work = running.getStore();
  if (work !== undefined && guards.has(work.guard)) {
    work.guard.contains(error, work);
    return;
  }
  for (const guard of guards) guard.ends(error, null);
  // The runner of tests has a listener too, and decides.
  if (process.listenerCount("uncaughtException") > 1) return;
  writeSync(2, `alidade: an exception that no step awaited ends the process; --resume or a restart goes on\n${stackOf(error)}\n`);
  process.exit(1);
}

/** A plug-in that ends the process does so in some work's name. */
function onExit(code: number): void {
  const work = running.getStore();
  if (work !== undefined && guards.has(work.guard)) work.guard.ends(new Error(`process.exit(${code})`), work.attempt);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
