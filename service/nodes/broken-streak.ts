/**
 * Attempts that this machine broke, one after another. A machine whose disk or container engine is gone ends each attempt at once,
 * so it has room again at once: it would claim, and break, all that there is, while other machines work. So after a few in a row
 * it tries one at a time, ever more seldom, until one is not broken.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorCode } from "../../base/errors.ts";
import type { Fault } from "../../proxy/control/index.ts";

/**
 * What this machine may be the cause of. An image that cannot be had, a service that is not healthy and demands that the node cannot
 * hold are those of a task or a set; an engine that is away is asked by itself.
 */
const ofMachine: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "sandbox_unavailable",
  "sandbox_died",
  "sandbox_error",
  "store_full",
  "store_error",
]);

/** So many different tasks in a row: one bad task breaks all rollouts of its group, wherever they are made. */
const mostTasks = 3;
const firstPauseMs = 5_000;
/** A machine that was mended is found so soon. */
const longestPauseMs = 60_000;

export class BrokenStreak {
  readonly #tasks = new Set<string>();
  #last: ErrorCode | null = null;
  /** Attempts that were broken since it is on. */
  #tries = 0;
  #over = new AbortController();

  /** `broken`: what of the infrastructure ended an attempt at this task; null where it is done. */
  ended(broken: ErrorCode | null, task: string): void {
    if (broken === null) {
      this.#tasks.clear();
      this.#tries = 0;
      this.#over.abort();
      this.#over = new AbortController();
    } else if (ofMachine.has(broken)) {
      this.#last = broken;
      if (this.isOn) this.#tries += 1;
      else this.#tasks.add(task);
    }
  }

  /** One attempt at a time is tried. */
  get isOn(): boolean {
    return this.#tasks.size >= mostTasks;
  }

  /** Before the next attempt; 0 where none is needed. */
  get pauseMs(): number {
    return this.isOn ? Math.min(firstPauseMs * 2 ** this.#tries, longestPauseMs) : 0;
  }

  /** Until the next attempt may begin: at once where one that still ran is not broken. */
  async rest(signal: AbortSignal): Promise<void> {
    const either = AbortSignal.any([signal, this.#over.signal]);
    await sleep(this.pauseMs, undefined, { signal: either }).catch(() => undefined);
  }

  faults(): Fault[] {
    if (!this.isOn) return [];
    const reason = `attempts at ${mostTasks} tasks in a row were broken here (${this.#last}): one at a time is tried, every ${this.pauseMs / 1000} s`;
    return [{ status: "degraded", reason }];
  }
}
