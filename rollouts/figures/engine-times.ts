/** When engines had calls of each policy step, from what each result says of it. */
import type { EngineSpans } from "../../ledger/index.ts";
import { CoveredTime } from "./covered-time.ts";
import { toSpans } from "./engine-spans.ts";

/** Milliseconds in which engines had a call of the step, and in which they could have had one. */
export type EngineTime = { busy_ms: number; engine_ms: number };

/** `sum`: what it came to when its spans were given up; null while they are kept. */
type StepTimes = { engines: Map<string, CoveredTime>; sum: EngineTime | null; isUnknown: boolean };

const nothing: EngineTime = { busy_ms: 0, engine_ms: 0 };

export class EngineTimes {
  readonly #steps = new Map<number, StepTimes>();
  readonly #most: number;
  #spans = 0;

  /** `most`: spans that are kept. Beyond them the oldest step keeps its sum alone, and is unknown where more comes of it. */
  constructor(most: number) {
    this.#most = most;
  }

  add(all: EngineSpans): void {
    for (const { engine, step, times } of all) {
      const known = this.#stepAt(step);
      if (known.sum !== null) known.isUnknown = true;
      else this.#addTo(known, engine, times);
    }
    while (this.#spans > this.#most) this.#close();
  }

  /** There are calls of the step whose times are unknown. */
  miss(step: number): void {
    this.#stepAt(step).isUnknown = true;
  }

  /** Zeros where it is unknown. */
  of(step: number | null): EngineTime {
    const known = step === null ? undefined : this.#steps.get(step);
    if (known === undefined || known.isUnknown) return nothing;
    return known.sum ?? sumOf(known);
  }

  #stepAt(step: number): StepTimes {
    const known = this.#steps.get(step) ?? { engines: new Map(), sum: null, isUnknown: false };
    this.#steps.set(step, known);
    return known;
  }

  #addTo({ engines }: StepTimes, engine: string, times: readonly number[]): void {
    const covered = engines.get(engine) ?? new CoveredTime();
    engines.set(engine, covered);
    this.#spans -= covered.size;
    for (const { from, to } of toSpans(times)) covered.add(from, to);
    this.#spans += covered.size;
  }

  #close(): void {
    const open = [...this.#steps].filter(([, { engines }]) => engines.size > 0).map(([step]) => step);
    const oldest = this.#stepAt(Math.min(...open));
    oldest.sum = sumOf(oldest);
    for (const { size } of oldest.engines.values()) this.#spans -= size;
    oldest.engines.clear();
  }
}

function sumOf({ engines }: StepTimes): EngineTime {
  const all = [...engines.values()].map(({ spans }) => spans);
  const first = Math.min(...all.flatMap((spans) => spans[0]?.from ?? []));
  const last = Math.max(...all.flatMap((spans) => spans.at(-1)?.to ?? []));
  const busy_ms = all.flat().reduce((sum, { from, to }) => sum + to - from, 0);
  return all.length === 0 ? nothing : { busy_ms, engine_ms: (last - first) * all.length };
}
