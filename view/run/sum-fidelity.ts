/** Adds up what pages say of tokens and edges. The report of `alidade fidelity` asks more of each attempt, which takes longer. */
import type { TrajectoryFigures } from "../../rollouts/records/index.ts";
import type { RunFidelity } from "./viewed-run.ts";

export function sumFidelity(attempts: Iterable<TrajectoryFigures>): RunFidelity {
  const [matches, excluded] = [new Map<string, number>(), new Map<string, number>()];
  const causes = new Map<RunFidelity["causes"][number]["cause"], number>();
  let [calls, sampled, trained] = [0, 0, 0];
  for (const { fidelity, matches: ofAttempt } of attempts) {
    calls += fidelity.calls;
    sampled += fidelity.tokens.sampled;
    trained += fidelity.tokens.trained;
    addCounts(matches, ofAttempt);
    addCounts(excluded, fidelity.tokens.excluded);
    for (const { cause, calls: more } of fidelity.causes) causes.set(cause, (causes.get(cause) ?? 0) + more);
  }
  return {
    calls,
    matches: Object.fromEntries(matches),
    tokens: { sampled, trained, excluded: Object.fromEntries(excluded) },
    causes: [...causes].map(([cause, count]) => ({ cause, calls: count })).sort((a, b) => b.calls - a.calls),
  };
}

function addCounts(sum: Map<string, number>, more: Readonly<Record<string, number>>): void {
  for (const name in more) sum.set(name, (sum.get(name) ?? 0) + (more[name] ?? 0));
}
