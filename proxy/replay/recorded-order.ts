/**
 * Gives the answers of a replay in the recorded order, where several agents work at once. Recorded answers come at once, so agents would
 * get ahead of each other, and a main agent would be told of an ended sub-agent at another turn. An answer therefore waits until all
 * that had come before it in the record has come again.
 */
import { withinTime } from "../../base/host/within-time.ts";
import type { Cut } from "./cut.ts";
import { isWork } from "./is-work.ts";
import { type PlacedAnswer, placeAnswers } from "./recorded-places.ts";
import type { RecordedCall, SessionRecording } from "./recording.ts";

/**
 * If nothing comes for so long, the harness does not do what it did, and answers wait no more. Tools and sandboxes have a moment at
 * least. A tool that ran long may run twice as long on a busier machine. A lost replay ends within a quarter of an hour.
 */
const patience = { leastMs: 30_000, ofRecorded: 2, mostMs: 15 * 60_000 };

export class RecordedOrder {
  readonly #roots: ReadonlyMap<string, string>;
  readonly #answers: ReadonlyMap<string, PlacedAnswer>;
  readonly #asked = new Set<string>();
  readonly #given = new Set<string>();
  /** By conversation: the turns that are asked for again, in their order. */
  readonly #expected: ReadonlyMap<string, readonly ExpectedTurn[]>;
  readonly #leastMs: number;
  #moved = Promise.withResolvers<void>();
  #whyLost: string | null = null;
  #isClosed = false;

  constructor(recording: SessionRecording, cut: Pick<Cut, "answered" | "next" | "open">, leastMs = patience.leastMs) {
    this.#roots = recording.roots;
    this.#answers = new Map(placeAnswers(recording, cut.answered).map((one) => [one.id, one]));
    this.#expected = Map.groupBy(expectedTurns(recording, cut), ({ root }) => root);
    this.#leastMs = leastMs;
  }

  /** Why answers are no longer given in the recorded order; null: they are. */
  get whyLost(): string | null {
    return this.#whyLost;
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

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Nothing more will come: the harness has ended. */
  close(): void {
    this.#isClosed = true;
    this.move();
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

  /**
   * Waits until it is so, the client has left, the harness has ended, or nothing has come for too long. `id`: of the call that waits, or
   * that its request follows.
   */
  async until(isSo: () => boolean, { id, signal }: { id: string | null; signal: AbortSignal }): Promise<void> {
    const leave = (): void => this.move();
    signal.addEventListener("abort", leave, { once: true });
    try {
      while (this.#whyLost === null && !this.#isClosed && !signal.aborted && !isSo()) {
        let isMoved = false;
        const moved = this.#moved.promise.then(() => {
          isMoved = true;
        });
        const { ms, turn } = this.patienceFor(id);
        await withinTime(moved, ms);
        if (isMoved) continue;
        this.#whyLost = whyLost(turn, ms);
        this.move();
      }
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /**
   * How long this call waits if nothing comes: as long as the slowest of those turns may need that can come now. The agents of other
   * turns wait for an answer themselves, or have ended. `turn`: what is waited for; null: none can come.
   */
  patienceFor(id: string | null): { ms: number; turn: ExpectedTurn | null } {
    const own = this.#roots.get(id ?? "");
    const next = [...this.#expected].flatMap(([root, turns]) => {
      const at = turns.findIndex((one) => !this.#asked.has(one.id));
      const [before, turn] = [turns[at - 1], turns[at]];
      const canCome = before === undefined || this.#given.has(before.id);
      return root === own || turn === undefined || !canCome ? [] : [turn];
    });
    const turn = next.toSorted((one, other) => other.afterMs - one.afterMs)[0] ?? null;
    const wanted = patience.ofRecorded * (turn?.afterMs ?? 0);
    return { ms: Math.max(this.#leastMs, Math.min(patience.mostMs, wanted)), turn };
  }
}

/**
 * A recorded turn that the harness is to ask for again. `afterMs`: in the record, the time from the last answer to this request. If it
 * is the first of its conversation, the last answer is that to the conversation which began this one.
 */
export type ExpectedTurn = { id: string; root: string; agent: string; number: number; afterMs: number };

function expectedTurns(
  { calls, roots }: SessionRecording,
  { answered, next, open }: Pick<Cut, "answered" | "next" | "open">,
): ExpectedTurn[] {
  const work = calls.filter(({ call }) => isWork(call.begun.request_class));
  const rootOf = ({ call: { id } }: RecordedCall): string => roots.get(id) ?? id;
  const lastOf = new Map(work.map((one) => [rootOf(one), one.begunAt]));
  const ends = work.filter(({ endedAt }) => endedAt !== null).sort((one, other) => (one.endedAt ?? 0) - (other.endedAt ?? 0));
  /** By conversation: the time of its last answer so far. */
  const since = new Map<string, number>();
  let ended = 0;
  return work.flatMap((one) => {
    const { id, begun } = one.call;
    const root = rootOf(one);
    for (let end = ends[ended]; end !== undefined && (end.endedAt ?? 0) < one.begunAt; end = ends[++ended])
      since.set(rootOf(end), end.call.outcome?.time ?? begun.time);
    // The record does not say which conversation began this one. It must be one that goes on later: of these, take the one that has worked longest.
    for (const other of since.keys()) if ((lastOf.get(other) ?? 0) < one.begunAt) since.delete(other);
    const from = since.get(root) ?? Math.min(begun.time, ...since.values());
    if (!answered.has(id) && !open.has(id) && one !== next) return [];
    return [{ id, root, agent: begun.agent, number: one.number, afterMs: Math.max(0, begun.time - from) }];
  });
}

function whyLost(turn: ExpectedTurn | null, ms: number): string {
  const what = turn === null ? "no agent had a turn to ask for" : `turn ${turn.number} of ${turn.agent} was not asked for`;
  return `${what} and nothing else came for ${Math.round(ms / 1000)} s: from there on, answers were given out of the recorded order`;
}
