/** Sends rollouts that began, changed or ended as server-sent events (`GET /events`). Watches the run only while a page listens. */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import type { PageLinks } from "../page/links.ts";
import { rolloutRow } from "../page/rollout-table.ts";
import type { ViewedRollout, ViewedRun } from "../run/viewed-run.ts";

/** Pages that may listen at once. Each holds a connection. */
const mostPages = 20;
/** Changes kept for a page that reconnects. A page that missed more gets only the total. */
const mostKept = 500;
/** Rows in one event. */
const mostRows = 200;
/** Proxies close a connection that is silent for a minute. */
const silenceMs = 20_000;
/** Collects bursts of changes. Must be longer than the reader's pause between two reads. */
const restMs = 600;

type NumberedChange = { number: number; id: string };

export class RunEvents {
  readonly #reader: ViewedRun;
  readonly #links: PageLinks;
  readonly #stopped: AbortSignal;
  readonly #listeners = new Set<() => void>();
  #unwatch: (() => void) | null = null;
  #seen = new Map<string, string>();
  #changes: NumberedChange[] = [];
  #number = 0;
  #looking: Promise<void> | null = null;

  constructor(reader: ViewedRun, links: PageLinks, stopped: AbortSignal) {
    this.#reader = reader;
    this.#links = links;
    this.#stopped = stopped;
  }

  /** `after`: the id of the last event that the page received; null for a new page. Throws `too_many_requests`. */
  open(after: number | null, left: AbortSignal): Response {
    if (this.#listeners.size >= mostPages) throw new AlidadeError("too_many_requests", `${mostPages} pages listen already: close one`);
    const signal = AbortSignal.any([left, this.#stopped]);
    return new Response(ReadableStream.from(this.#encoded(after, signal)) as ReadableStream<Uint8Array>, {
      headers: { "content-type": "text/event-stream", "x-accel-buffering": "no" },
    });
  }

  async *#encoded(after: number | null, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    for await (const text of this.#lines(after, signal)) yield encoder.encode(text);
  }

  async *#lines(after: number | null, signal: AbortSignal): AsyncGenerator<string> {
    let wake = Promise.withResolvers<void>();
    const listener = (): void => wake.resolve();
    this.#listen(listener);
    try {
      let told = after !== null && after <= this.#number ? after : this.#number;
      yield `retry: 2000\nid: ${told}\n\n`;
      while (!signal.aborted) {
        if (told === this.#number) await Promise.race([wake.promise, sleep(silenceMs, undefined, { signal }).catch(() => undefined)]);
        wake = Promise.withResolvers();
        if (signal.aborted) return;
        if (told === this.#number) yield ": still here\n\n";
        else {
          yield this.#event(told);
          told = this.#number;
        }
      }
    } finally {
      this.#leave(listener);
    }
  }

  /** Returns each changed rollout once, with its current row. A retried rollout no longer has its earlier attempt's id. */
  #event(told: number): string {
    const changed = new Set(this.#changes.filter(({ number }) => number > told).map(({ id }) => id));
    const ids = [...changed].filter((id) => this.#reader.has(id)).slice(-mostRows);
    const rows = ids.map((id) => ({ id, html: rolloutRow(this.#reader.find(id), "", this.#links).toString() }));
    return `id: ${this.#number}\nevent: rollouts\ndata: ${JSON.stringify({ rows, total: this.#reader.rollouts.length })}\n\n`;
  }

  #listen(listener: () => void): void {
    this.#listeners.add(listener);
    if (this.#listeners.size > 1) return;
    if (this.#seen.size === 0) for (const rollout of this.#reader.rollouts) this.#seen.set(rollout.id, stateOf(rollout));
    const look = (): void => {
      this.#looking ??= this.#look();
    };
    this.#unwatch = this.#reader.watch(look);
    look();
  }

  #leave(listener: () => void): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = null;
  }

  async #look(): Promise<void> {
    try {
      await sleep(restMs);
      // Changes that arrive while it reads cause another read.
      this.#looking = null;
      await this.#reader.refresh();
      this.#compare();
    } catch {
      // A file that is being replaced is read at its next change.
      this.#looking = null;
    }
  }

  #compare(): void {
    const now = new Map(this.#reader.rollouts.map((rollout) => [rollout.id, stateOf(rollout)]));
    const before = this.#number;
    for (const [id, state] of now) if (this.#seen.get(id) !== state) this.#changes.push({ number: ++this.#number, id });
    this.#seen = now;
    this.#changes = this.#changes.slice(-mostKept);
    if (this.#number > before) for (const listener of this.#listeners) listener();
  }
}

function stateOf({ entry: { state, reward, turns, sampled_tokens, attempt, end } }: ViewedRollout): string {
  return JSON.stringify([state, reward, turns, sampled_tokens, attempt, end]);
}
