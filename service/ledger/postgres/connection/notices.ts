/** What nodes must hear at once: LISTEN on a connection of its own, which is made again when it breaks. */
import { setTimeout as sleep } from "node:timers/promises";
import { Changes } from "../../../../base/host/changes.ts";
import { beatSeconds } from "../../ledger.ts";
import type { PostgresAddress } from "./address.ts";
import type { PgClient, PgLibrary } from "./pg-library.ts";

/** queued: there may be more to claim. ordered: nodes have an order. Each wakes every node, so only rare changes are notified. */
export type Notice = "queued" | "ordered";

/** Submissions of a burst wake each node once. */
const gatherMs = 10;
/** Also without a word: a connection that is half open says nothing, and no other one does either. */
const lookAgainMs = beatSeconds * 1000;

export class Notices implements AsyncDisposable {
  readonly claimable = new Changes();
  readonly ordered = new Changes();
  /** Each schema has one, for a schema is one ledger. */
  readonly channel: string;
  readonly #stop = new AbortController();
  readonly #listening: Promise<void>;
  #queued = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(pg: PgLibrary, address: PostgresAddress) {
    this.channel = `alidade_${address.schema}`;
    this.#listening = this.#listen(pg, address);
  }

  /** Grows when there may be more to claim, at once. */
  get queued(): number {
    return this.#queued;
  }

  /** Also of this process's own changes: their word would come back later than its next claim. */
  heard(notice: string | undefined): void {
    if (notice === "ordered") this.ordered.add();
    if (notice !== "queued") return;
    this.#queued += 1;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.claimable.add();
    }, gatherMs);
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
      await this.#until(client, signal).catch(() => undefined);
      // Not awaited: a connection that is half open ends when the kernel says so.
      void client.end().catch(() => undefined);
      this.heard("queued");
      await sleep(1_000, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Until the connection breaks or the signal fires. */
  async #until(client: PgClient, signal: AbortSignal): Promise<void> {
    const broken = new AbortController();
    client.on("error", () => broken.abort());
    client.on("end", () => broken.abort());
    client.on("notification", ({ payload }: { payload?: string }) => this.heard(payload));
    await client.connect();
    await client.query(`LISTEN ${this.channel}`);
    this.heard("ordered");
    const either = AbortSignal.any([signal, broken.signal]);
    while (!either.aborted) {
      // What came before it listened, or while nothing was heard, is unknown. Nodes look for orders with each beat.
      this.heard("queued");
      await sleep(lookAgainMs, undefined, { signal: either, ref: false }).catch(() => undefined);
    }
  }
}
