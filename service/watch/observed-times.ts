/** How long stages of rollouts and calls take on this machine, for a monitor. Made of records, as spans are. */
import type { EndedAttempt, EndedCall, Watcher } from "../../base/schema/watcher.ts";
import { Histogram } from "../../base/wire/histogram.ts";
import type { MetricFamily } from "../../base/wire/prometheus-text.ts";
import { stageTimes } from "./stage-times.ts";

export class ObservedTimes implements Watcher {
  readonly #stages = new Histogram("alidade_stage_seconds", "How long a stage of an attempt took: queue, init, run, grade, teach, store.");
  readonly #calls = new Histogram("alidade_call_seconds", "From a call's beginning to its end in the log, by engine.");
  readonly #firstTokens = new Histogram("alidade_first_token_seconds", "From a try's beginning to its first token, by engine.");

  /** Number of attempts that a teacher was asked about, by outcome. */
  readonly #taught = { scored: 0, unscored: 0 };

  attempt(attempt: EndedAttempt): void {
    const { teach, scored } = attempt.record.times;
    if (teach !== undefined) this.#taught[scored === undefined ? "unscored" : "scored"] += 1;
    for (const { name, start, end, isCut } of stageTimes(attempt)) if (!isCut) this.#stages.observe((end - start) / 1000, { stage: name });
  }

  call({ begun, tries, outcome }: EndedCall): void {
    this.#calls.observe((outcome.time - begun.time) / 1000, engineLabel(outcome.engine));
    for (const { engine_name, started, first_token } of tries)
      if (first_token) this.#firstTokens.observe((first_token - started) / 1000, engineLabel(engine_name));
  }

  set(): void {}

  families(): MetricFamily[] {
    return [...[this.#stages, this.#calls, this.#firstTokens].map((histogram) => histogram.family()), this.#taughtFamily()];
  }

  #taughtFamily(): MetricFamily {
    return {
      name: "alidade_teacher_attempts_total",
      help: "Attempts that the teacher was asked about, by what came of it: scored, unscored.",
      type: "counter",
      samples: Object.entries(this.#taught).map(([outcome, value]) => ({ labels: { outcome }, value })),
    };
  }
}

const engineLabel = (name: string | null): Record<string, string> => ({ engine: name ?? "none" });
