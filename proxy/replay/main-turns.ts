/** What follows each turn of the main agent, found once for all turns of a recording: a policy asks about every one of them. */
import { isWork } from "./is-work.ts";
import type { RecordedCall, SessionRecording } from "./recording.ts";

export function mainTurnsOf(recording: SessionRecording): MainTurns {
  const known = all.get(recording) ?? new MainTurns(recording);
  all.set(recording, known);
  return known;
}

const all = new WeakMap<SessionRecording, MainTurns>();

export class MainTurns {
  /** The main agent's turns, in their order. */
  readonly finished: readonly RecordedCall[];
  readonly #calls: readonly RecordedCall[];
  readonly #places: ReadonlyMap<string, number>;
  readonly #children: ReadonlyMap<string | null, readonly RecordedCall[]>;
  readonly #beside: ReadonlyMap<string, readonly RecordedCall[]>;

  constructor(recording: SessionRecording) {
    this.#calls = recording.calls.filter(({ call }) => recording.main.has(call.id));
    this.#places = new Map(this.#calls.map(({ call }, place) => [call.id, place]));
    this.#children = Map.groupBy(this.#calls, ({ call }) => call.begun.parent_call_id);
    this.#beside = findBeside(recording);
    this.finished = this.#calls.filter(({ call }) => call.turn !== null);
  }

  /** The call that goes on from this turn, or the main agent's next one where its history was written anew. null: its first call. */
  nextOf(last: RecordedCall | null): RecordedCall | null {
    if (last === null) return this.#calls[0] ?? null;
    const children = (this.#children.get(last.call.id) ?? []).filter(({ number }) => number > last.number);
    const place = this.#places.get(last.call.id);
    const later = place === undefined ? undefined : this.#calls[place + 1];
    return children.find(({ call }) => call.turn !== null) ?? children[0] ?? later ?? null;
  }

  /** Calls that were being sampled when this one of the main agent was asked for. If a request was repeated, its last try counts. */
  callsBeside(next: RecordedCall): readonly RecordedCall[] {
    return this.#beside.get(next.call.id) ?? [];
  }
}

/** By id of each of the main agent's calls. */
function findBeside({ calls, main }: SessionRecording): Map<string, RecordedCall[]> {
  const work = calls.filter(({ call }) => isWork(call.begun.request_class));
  const repeatedAt = new Map<string, number>();
  for (const { call, number } of work.toReversed()) if (call.begun.retry_of !== null) repeatedAt.set(call.begun.retry_of, number);
  const beside = new Map<string, RecordedCall[]>();
  let running: RecordedCall[] = [];
  for (const next of work) {
    if (main.has(next.call.id)) {
      running = running.filter(({ endedAt }) => (endedAt ?? Infinity) > next.begunAt);
      beside.set(
        next.call.id,
        running.filter(({ call }) => (repeatedAt.get(call.id) ?? Infinity) > next.number),
      );
    }
    running.push(next);
  }
  return beside;
}
