/** When engines had calls of each policy step, from the calls' own times. */
import type { CallRecord } from "../../schema/trajectory.ts";
import type { ResultTally } from "./tally.ts";

/** Unix milliseconds. */
type CallInterval = { begun: number; finished: number };

export class EngineTimes {
  readonly #steps = new Map<number, Map<string, CallInterval[]>>();

  /** Calls of the policy that have an end; one that spans an update belongs to the step at its start. */
  add(calls: readonly CallRecord[]): void {
    for (const { other_policy, policy, engine, engine_name, times } of calls) {
      const [step, name] = [policy.start?.step ?? null, engine_name ?? engine];
      if (other_policy || step === null || name === null || times.finished === null) continue;
      const engines = this.#steps.get(step) ?? new Map<string, CallInterval[]>();
      this.#steps.set(step, engines);
      const intervals = engines.get(name) ?? [];
      engines.set(name, intervals);
      intervals.push({ begun: times.begun, finished: times.finished });
    }
  }

  byStep(): [step: number, Pick<ResultTally, "busy_ms" | "engine_ms">][] {
    return [...this.#steps].map(([step, engines]) => {
      const all = [...engines.values()];
      const first = all.flat().reduce((least, { begun }) => Math.min(least, begun), Number.POSITIVE_INFINITY);
      const last = all.flat().reduce((most, { finished }) => Math.max(most, finished), 0);
      return [step, { busy_ms: all.reduce((sum, intervals) => sum + covered(intervals), 0), engine_ms: (last - first) * engines.size }];
    });
  }
}

/** Length of what the intervals cover together. */
function covered(intervals: readonly CallInterval[]): number {
  let [sum, end] = [0, 0];
  for (const { begun, finished } of intervals.toSorted((one, other) => one.begun - other.begun)) {
    sum += Math.max(0, finished - Math.max(begun, end));
    end = Math.max(end, finished);
  }
  return sum;
}
