/** Adds up the figures of tokens and edges that pages show. `alidade fidelity` reports more of each attempt, which takes longer. */
import { sumCounts } from "../../base/statistics/sum-counts.ts";
import type { TrajectoryFigures } from "../../rollouts/records/index.ts";
import type { RunFidelity } from "./viewed-run.ts";

export function sumFidelity(attempts: readonly TrajectoryFigures[]): RunFidelity {
  const causes = new Map<RunFidelity["causes"][number]["cause"], number>();
  let [calls, sampled, trained] = [0, 0, 0];
  for (const { fidelity } of attempts) {
    calls += fidelity.calls;
    sampled += fidelity.tokens.sampled;
    trained += fidelity.tokens.trained;
    for (const { cause, calls: more } of fidelity.causes) causes.set(cause, (causes.get(cause) ?? 0) + more);
  }
  return {
    calls,
    matches: sumCounts(attempts.map(({ matches }) => matches)),
    tokens: { sampled, trained, excluded: sumCounts(attempts.map(({ fidelity }) => fidelity.tokens.excluded)) },
    causes: [...causes].map(([cause, count]) => ({ cause, calls: count })).sort((a, b) => b.calls - a.calls),
  };
}
