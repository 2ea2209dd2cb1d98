/** When engines had calls of one attempt, as its result row keeps it. */

import type { CallRecord } from "../../base/schema/trajectory.ts";
import { type CoveredSpan, CoveredTime } from "../../base/statistics/covered-time.ts";
import { type EngineSpans, mostEngineSpans } from "../ledger/index.ts";

/**
 * Calls of the policy that have an end, without the time in which they waited for an engine or stood still at one; one that spans an
 * update belongs to the step at its start. null: there are more than `most` spans.
 */
export function engineSpans(calls: readonly CallRecord[], most = mostEngineSpans): EngineSpans | null {
  const steps = new Map<number, Map<string, CoveredTime>>();
  for (const { other_policy, policy, engine, engine_name, replayed_from, times, pauses = [] } of calls) {
    const [step, name] = [policy.start?.step ?? null, engine_name ?? engine];
    if (other_policy || step === null || name === null || times.finished === null || replayed_from !== null) continue;
    const spans = without(pauses, times.begun, times.finished);
    if (spans.length === 0) continue;
    const engines = steps.get(step) ?? new Map<string, CoveredTime>();
    steps.set(step, engines);
    const covered = engines.get(name) ?? new CoveredTime();
    engines.set(name, covered);
    for (const { from, to } of spans) covered.add(from, to);
  }
  const all = [...steps].flatMap(([step, engines]) => [...engines].map(([engine, { spans }]) => ({ engine, step, spans })));
  if (all.reduce((sum, { spans }) => sum + spans.length, 0) > most) return null;
  return all.map(({ engine, step, spans }) => ({ engine, step, times: toTimes(spans) }));
}

/** What is left of the time, in order. */
function without(pauses: readonly CoveredSpan[], from: number, to: number): CoveredSpan[] {
  const left: CoveredSpan[] = [];
  let begin = from;
  for (const pause of pauses.toSorted((one, other) => one.from - other.from)) {
    if (pause.from > begin) left.push({ from: begin, to: Math.min(pause.from, to) });
    begin = Math.max(begin, pause.to);
    if (begin >= to) return left;
  }
  return [...left, { from: begin, to }];
}

/** Differences are half as long in a row as times are. */
function toTimes(spans: readonly CoveredSpan[]): number[] {
  return spans.flatMap(({ from, to }, at) => [from - (spans[at - 1]?.to ?? 0), to - from]);
}

export function toSpans(times: readonly number[]): CoveredSpan[] {
  const spans: CoveredSpan[] = [];
  let time = 0;
  for (let at = 0; at + 1 < times.length; at += 2) {
    const from = time + (times[at] ?? 0);
    time = from + (times[at + 1] ?? 0);
    spans.push({ from, to: time });
  }
  return spans;
}
