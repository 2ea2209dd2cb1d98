/**
 * Gives the answers of a replay in the recorded order, where several agents work at once. Recorded answers come at once, so agents would
 * get ahead of each other, and a main agent would be told of an ended sub-agent at another turn. An answer therefore waits until all
 * that had come before it in the record has come again.
 */
import { withinTime } from "../../base/host/within-time.ts";
import { type PlacedAnswer, placeAnswers } from "./recorded-places.ts";
import type { SessionRecording } from "./recording.ts";

/**
 * If nothing comes for so long, the harness does not do what it did, and answers wait no more. Tools and sandboxes have a moment at
 * least. A tool that ran long may run twice as long on a busier machine. A lost replay ends within a quarter of an hour.
 */
const patience = { leastMs: 30_000, ofLongestGap: 2, mostMs: 15 * 60_000 };

export class RecordedOrder {
  readonly #roots: ReadonlyMap<string, string>;
  readonly #answers: ReadonlyMap<string, PlacedAnswer>;
  readonly #asked = new Set<string>();
  readonly #given = new Set<string>();
  readonly #longestWaitMs: number;
  #moved = Promise.withResolvers<void>();
  #isLost = false;

  constructor(recording: SessionRecording, answered: ReadonlySet<string>, leastMs = patience.leastMs) {
    this.#roots = recording.roots;
    this.#answers = new Map(placeAnswers(recording, answered).map((one) => [one.id, one]));
    this.#longestWaitMs = waitAtMost(recording, leastMs);
  }

  asked(id: string): void {
    this.#asked.add(id);
    this.move();
  }

  given(id: string): void {
    this.#given.add(id);
    this.move();
  }

  /** Takes back that it was asked: its client has left without an answer. */
  left(id: string): void {
    this.#asked.delete(id);
  }

  /** Lets those who wait look again. */
  move(): void {
    this.#moved.resolve();
    this.#moved = Promise.withResolvers();
  }

  /** True if all other conversations than this call's have been given their answers. null: a new conversation. */
  hasGivenBeside(id: string | null): boolean {
    const root = this.#roots.get(id ?? "");
    return this.#answers.values().every((one) => one.root === root || this.#given.has(one.id));
  }

  /** True if all that other conversations had asked for and were given before this answer has come again. */
  isDue(id: string): boolean {
    const own = this.#answers.get(id);
    if (own === undefined) return true;
    return this.#answers.values().every((other) => {
      if (other.root === own.root || this.#given.has(other.id)) return true;
      return other.at >= own.at && (other.begunAt >= own.at || this.#asked.has(other.id));
    });
  }

  /** Waits until it is so, the client has left, or nothing has come for too long. */
  async until(isSo: () => boolean, signal: AbortSignal): Promise<void> {
    const leave = (): void => this.move();
    signal.addEventListener("abort", leave, { once: true });
    try {
      while (!this.#isLost && !signal.aborted && !isSo()) {
        let isMoved = false;
        const moved = this.#moved.promise.then(() => {
          isMoved = true;
        });
        await withinTime(moved, this.#longestWaitMs);
        if (isMoved) continue;
        this.#isLost = true;
        this.move();
      }
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }
}

/** How long nothing may come: as long as the harness may need for what it did at its slowest. */
export function waitAtMost({ calls }: Pick<SessionRecording, "calls">, leastMs = patience.leastMs): number {
  return Math.max(leastMs, Math.min(patience.mostMs, patience.ofLongestGap * longestGapMs(calls)));
}

/**
 * The longest time in which nothing was begun and nothing ended, or in which an agent ran the tools of one turn. Others may have asked
 * meanwhile, but a replay answers them at once, so it can be still for all that time.
 */
function longestGapMs(calls: SessionRecording["calls"]): number {
  const ends = new Map(calls.map(({ call }) => [call.id, call.outcome?.time ?? call.begun.time]));
  const times = [...calls.map(({ call }) => call.begun.time), ...ends.values()].sort((a, b) => a - b);
  const still = times.map((time, at) => time - (times[at - 1] ?? time));
  const tools = calls.map(({ call: { begun } }) => begun.time - (ends.get(begun.parent_call_id ?? "") ?? begun.time));
  return [...still, ...tools].reduce((most, gap) => Math.max(most, gap), 0);
}
