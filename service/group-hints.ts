/**
 * Tells a webhook that a set has more whole groups. A hint and no delivery: results are read by cursor as ever, one request is
 * under way at a time, and what happens meanwhile is one hint afterwards. So a receiver that is slow or away delays hints alone.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import type { Ledger, SetState } from "../ledger/index.ts";
import { postSigned, type Webhook } from "./post-signed.ts";

/** Groups that become whole within a second are one hint. */
const defaultPauseMs = 1_000;
/** After failures the pause doubles up to this. */
const longestPauseMs = 60_000;
const groupsAtOnce = 50;

type HintState = { whole: number; cursor: string | null };

export class GroupHints implements AsyncDisposable {
  readonly #ledger: Ledger;
  readonly #webhook: Webhook;
  readonly #note: (text: string) => void;
  readonly #stop = new AbortController();
  readonly #told = new Map<string, HintState>();
  readonly #work: Promise<void>;

  /** `note` hears of the first failure in a row. */
  constructor(ledger: Ledger, webhook: Webhook, note: (text: string) => void, pauseMs = defaultPauseMs) {
    this.#ledger = ledger;
    this.#webhook = webhook;
    this.#note = note;
    this.#work = this.#watch(pauseMs, this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#work;
  }

  async #watch(shortest: number, signal: AbortSignal): Promise<void> {
    let pause = shortest;
    for (let isFirst = true; !signal.aborted; ) {
      const seen = this.#ledger.version;
      try {
        for (const set of await this.#ledger.sets()) await this.#look(set, isFirst, signal);
        isFirst = false;
        pause = shortest;
        await sleep(pause, undefined, { signal, ref: false });
        await this.#ledger.changed(seen, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (pause === shortest) this.#note(`${messageOf(error)}; it is tried again, ever more seldom`);
        pause = Math.min(pause * 2, longestPauseMs);
        await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }

  /** A set that was over before this process began is not told again. */
  async #look({ set_id, key, groups, is_over }: SetState, isFirst: boolean, signal: AbortSignal): Promise<void> {
    const told = this.#told.get(set_id) ?? { whole: is_over && isFirst ? groups.whole : 0, cursor: null };
    this.#told.set(set_id, told);
    if (groups.whole <= told.whole) return;
    const now = await this.#readOn(set_id, told, signal);
    if (now.whole === told.whole) return;
    await postSigned(this.#webhook, JSON.stringify({ set: set_id, key, whole_groups: now.whole, cursor: now.cursor }), signal);
    this.#told.set(set_id, now);
  }

  async #readOn(set: string, { whole, cursor }: HintState, signal: AbortSignal): Promise<HintState> {
    for (const now = { whole, cursor }; ; ) {
      signal.throwIfAborted();
      const page = await this.#ledger.wholeGroups(set, now.cursor, groupsAtOnce);
      now.whole += page.length;
      now.cursor = page.at(-1)?.cursor ?? now.cursor;
      if (page.length < groupsAtOnce) return now;
    }
  }
}
