/** When engines had calls of each policy step, from what each result says of it. */
import { z } from "zod";
import { type CoveredSpan, CoveredTime } from "../../base/statistics/covered-time.ts";
import type { EngineSpans } from "../ledger/index.ts";
import { toSpans } from "./engine-spans.ts";

/** Milliseconds in which engines had a call of the step, and in which they could have had one. */
const EngineTime = z.strictObject({ busy_ms: z.number(), engine_ms: z.number() });
export type EngineTime = z.infer<typeof EngineTime>;

/** All that is known, for a later process. `spans`: by turns beginning and end, in Unix milliseconds. */
export const KeptTimes = z.array(
  z.strictObject({
    step: z.number().int(),
    is_unknown: z.boolean(),
    sum: EngineTime.nullable(),
    engines: z.array(z.strictObject({ engine: z.string(), spans: z.array(z.number()) })),
  }),
);
export type KeptTimes = z.infer<typeof KeptTimes>;

/** `sum`: what it came to when its spans were given up; null while they are kept. */
type StepTimes = { engines: Map<string, CoveredTime>; sum: EngineTime | null; isUnknown: boolean };

const nothing: EngineTime = { busy_ms: 0, engine_ms: 0 };

export class EngineTimes {
  readonly #steps = new Map<number, StepTimes>();
  readonly #most: number;
  #spans = 0;

  /** `most`: spans that are kept. Beyond them the oldest step keeps its sum alone, and is unknown where more comes of it. */
  constructor(most: number, kept: KeptTimes = []) {
    this.#most = most;
    for (const { step, is_unknown, sum, engines } of kept) {
      const known = engines.map(({ engine, spans }) => [engine, new CoveredTime(pairsOf(spans))] as const);
      this.#steps.set(step, { engines: new Map(known), sum, isUnknown: is_unknown });
      for (const [, { size }] of known) this.#spans += size;
    }
  }

  toKept(): KeptTimes {
    return [...this.#steps].map(([step, { engines, sum, isUnknown }]) => ({
      step,
      is_unknown: isUnknown,
      sum,
      engines: [...engines].map(([engine, { spans }]) => ({ engine, spans: spans.flatMap(({ from, to }) => [from, to]) })),
    }));
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

function pairsOf(times: readonly number[]): CoveredSpan[] {
  return Array.from({ length: times.length / 2 }, (_, at) => ({ from: times[at * 2] ?? 0, to: times[at * 2 + 1] ?? 0 }));
}

function sumOf({ engines }: StepTimes): EngineTime {
  const all = [...engines.values()].map(({ spans }) => spans);
  const first = Math.min(...all.flatMap((spans) => spans[0]?.from ?? []));
  const last = Math.max(...all.flatMap((spans) => spans.at(-1)?.to ?? []));
  const busy_ms = all.flat().reduce((sum, { from, to }) => sum + to - from, 0);
  return all.length === 0 ? nothing : { busy_ms, engine_ms: (last - first) * all.length };
}
