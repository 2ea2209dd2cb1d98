/** What other processes changed: LISTEN on a connection of its own, which is made again when it breaks. */
import { setTimeout as sleep } from "node:timers/promises";
import { Changes } from "../changes.ts";
import { beatSeconds } from "../ledger.ts";
import type { PostgresAddress } from "./address.ts";
import type { PgClient, PgLibrary } from "./pg-library.ts";

/**
 * queued: there is more to claim. over: there are more results. nodes: one came or went, and what it had may be queued.
 * ordered: nodes have an order. answered: one of them said what came of it.
 */
export type Notice = "queued" | "over" | "nodes" | "ordered" | "answered";

/** A burst of changes wakes each reader once. Far below the time that a trainer would notice. */
const gatherMs = 10;
/** A reader whose rows are held looks again after this time at most. */
const longestHeldMs = 500;
/** Also without a word: a connection that is half open says nothing, and no other one does either. */
const lookAgainMs = beatSeconds * 1000;

export class Notices implements AsyncDisposable {
  readonly changes = new Changes();
  readonly ordered = new Changes();
  readonly answered = new Changes();
  readonly #stop = new AbortController();
  readonly #listening: Promise<void>;
  #queued = 0;
  #timer: NodeJS.Timeout | null = null;
  #wakesAt = 0;
  #heldMs = gatherMs;

  constructor(pg: PgLibrary, address: PostgresAddress) {
    this.#listening = this.#listen(pg, address);
  }

  /** Grows when there may be more to claim. */
  get queued(): number {
    return this.#queued;
  }

  static channelOf({ schema }: PostgresAddress): string {
    return `alidade_${schema}`;
  }

  /** Also of this process's own changes: their word would come back later than its next claim. */
  heard(notice: string | undefined): void {
    // A trainer waits for these, and there are few of them.
    if (notice === "ordered") this.ordered.add();
    if (notice === "ordered" || notice === "answered" || notice === "nodes") this.answered.add();
    if (notice === "ordered" || notice === "answered") return;
    if (notice === "queued" || notice === "nodes") this.#queued += 1;
    this.#wake(gatherMs);
  }

  /** What was said meanwhile is unknown. */
  #heardNothing(): void {
    for (const notice of ["nodes", "ordered"] as const) this.heard(notice);
  }

  /** Rows that a reader asked for are committed and cannot be given yet: it is woken soon, and ever later while that lasts. */
  heldBack(isHeld: boolean): void {
    this.#heldMs = isHeld ? Math.min(this.#heldMs * 2, longestHeldMs) : gatherMs;
    if (isHeld) this.#wake(this.#heldMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#listening;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #listen(pg: PgLibrary, address: PostgresAddress): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const client = new pg.Client(address.options);
      await this.#until(client, Notices.channelOf(address), signal).catch(() => undefined);
      // Not awaited: a connection that is half open ends when the kernel says so.
      void client.end().catch(() => undefined);
      this.#heardNothing();
      await sleep(1_000, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Until the connection breaks or the signal fires. */
  async #until(client: PgClient, channel: string, signal: AbortSignal): Promise<void> {
    const broken = new AbortController();
    client.on("error", () => broken.abort());
    client.on("end", () => broken.abort());
    client.on("notification", ({ payload }: { payload?: string }) => this.heard(payload));
    await client.connect();
    await client.query(`LISTEN ${channel}`);
    const either = AbortSignal.any([signal, broken.signal]);
    while (!either.aborted) {
      // What came before it listened, or while nothing was heard, is unknown.
      this.#heardNothing();
      await sleep(lookAgainMs, undefined, { signal: either, ref: false }).catch(() => undefined);
    }
  }

  /** The soonest time that was asked for counts. */
  #wake(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (this.#timer !== null && this.#wakesAt <= at) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#wakesAt = at;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.changes.add();
    }, milliseconds);
  }
}
