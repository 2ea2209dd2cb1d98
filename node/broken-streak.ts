/**
 * Attempts that this machine broke, one after another. A machine whose disk or container engine is gone ends each attempt at once,
 * so it has room again at once: it would claim, and break, all that there is, while other machines work. So after a few in a row
 * it tries one at a time, ever more seldom, until one is not broken.
 */
import { type ErrorCode, sandboxFailures } from "../errors.ts";
import type { Fault } from "../proxy/control/health.ts";

/** What this machine may be the cause of. An engine that is away is asked by itself, and holds no attempt up elsewhere. */
const ofMachine: ReadonlySet<ErrorCode> = new Set<ErrorCode>([...sandboxFailures, "node_unfit", "store_full", "store_error"]);

/** Two of one bad task may come together. */
const most = 3;
const firstPauseMs = 5_000;
/** A machine that was mended is found so soon. */
const longestPauseMs = 60_000;

export class BrokenStreak {
  #codes: ErrorCode[] = [];

  /** `broken`: what of the infrastructure ended an attempt; null where it is done. */
  ended(broken: ErrorCode | null): void {
    if (broken === null) this.#codes = [];
    else if (ofMachine.has(broken)) this.#codes = [...this.#codes, broken].slice(-longest);
  }

  /** One attempt at a time is tried. */
  get isOn(): boolean {
    return this.#codes.length >= most;
  }

  /** Before the next attempt; 0 where none is needed. */
  get pauseMs(): number {
    return this.isOn ? Math.min(firstPauseMs * 2 ** (this.#codes.length - most), longestPauseMs) : 0;
  }

  faults(): Fault[] {
    if (!this.isOn) return [];
    const last = this.#codes.at(-1);
    const reason = `the last ${this.#codes.length} attempts were broken here (${last}): one at a time is tried, every ${this.pauseMs / 1000} s`;
    return [{ status: "degraded", reason }];
  }
}

/** The pause grows no more behind it. */
const longest = most + Math.ceil(Math.log2(longestPauseMs / firstPauseMs));
