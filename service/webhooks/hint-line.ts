/** The hints of one receiver: one request is under way at a time, and a failure delays no other receiver. */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../base/errors.ts";
import type { Limiter } from "../../base/host/limiter.ts";
import type { Ledger, SetState } from "../ledger/index.ts";
import { postSigned, type Webhook } from "./post-signed.ts";

/** After failures the pause doubles up to this. */
export const longestPauseMs = 60_000;
const groupsAtOnce = 50;

type HintState = { whole: number; cursor: string | null };

export type HintLineParts = {
  ledger: Ledger;
  webhook: Webhook;
  /** Called at the first of several failures in a row. */
  note: (text: string) => void;
  pauseMs: number;
  /** Requests to receivers that trainers choose share them. */
  places: Limiter;
  /** After this many failures in a row a hint is given up. The next hint is sent when the set has more whole groups. */
  tries: number;
  signal: AbortSignal;
};

export class HintLine {
  readonly #parts: HintLineParts;
  /** By the set. */
  readonly #told = new Map<string, HintState>();
  /** Set -> its key: those with groups that the receiver does not know of. */
  readonly #waiting = new Map<string, string>();
  #work: Promise<void> | null = null;
  #isFailing = false;

  constructor(parts: HintLineParts) {
    this.#parts = parts;
  }

  /** Resolves when nothing of it runs; after its signal has fired nothing begins. */
  get ended(): Promise<void> {
    return this.#work ?? Promise.resolve();
  }

  /** A set that was over before this process began is not told again. */
  look({ set_id, key, groups, is_over, expired }: SetState, isFirst: boolean): void {
    const known = this.#told.get(set_id) ?? { whole: is_over && isFirst ? groups.whole : 0, cursor: null };
    const told = behindExpired(known, expired);
    this.#told.set(set_id, told);
    if (groups.whole <= told.whole) return;
    this.#waiting.set(set_id, key);
    this.#work ??= this.#tellAll();
  }

  async #tellAll(): Promise<void> {
    for (const [set, key] of this.#waiting) {
      await this.#tell(set, key);
      if (this.#parts.signal.aborted) break;
    }
    this.#work = null;
  }

  /** Tries until the receiver has the hint, or until it gives up. If the set changes meanwhile, its next hint waits. */
  async #tell(set: string, key: string): Promise<void> {
    const { signal, note, pauseMs, tries } = this.#parts;
    let pause = pauseMs;
    for (let turn = 1; !signal.aborted; turn += 1) {
      try {
        this.#waiting.delete(set);
        await this.#post(set, key, turn >= tries);
        this.#isFailing = false;
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!this.#isFailing) note(`${messageOf(error)}; it is tried again, ever more seldom`);
        this.#isFailing = true;
        if (turn >= tries) return;
        pause = Math.min(pause * 2, longestPauseMs);
        await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }

  async #post(set: string, key: string, isLast: boolean): Promise<void> {
    const { webhook, places, signal } = this.#parts;
    const told = this.#told.get(set) ?? { whole: 0, cursor: null };
    const now = await this.#readOn(set, told);
    if (now.whole === told.whole) return;
    if (isLast) this.#told.set(set, now);
    const body = JSON.stringify({ set, key, whole_groups: now.whole, cursor: now.cursor });
    await places.run(signal, () => postSigned(webhook, body, signal));
    this.#told.set(set, now);
  }

  /** Groups may have expired since the set was looked at, while the receiver was away. */
  async #readOn(set: string, told: HintState): Promise<HintState> {
    const { expired } = await this.#parts.ledger.set(set);
    for (const now = { ...behindExpired(told, expired) }; ; ) {
      this.#parts.signal.throwIfAborted();
      const page = await this.#parts.ledger.wholeGroups(set, now.cursor, groupsAtOnce);
      now.whole += page.length;
      now.cursor = page.at(-1)?.cursor ?? now.cursor;
      if (page.length < groupsAtOnce) return now;
    }
  }
}

/** The first groups expire first, so they are counted up to the cursor from which on groups are served. */
function behindExpired(known: HintState, expired: SetState["expired"]): HintState {
  return expired !== null && known.whole < expired.groups ? { whole: expired.groups, cursor: expired.cursors.groups } : known;
}
