/** Which weights sampled a row, as numbers: trainers count steps. */
import type { FlatRow } from "../reconstruct/index.ts";
import type { Trajectory } from "../schema/trajectory.ts";

/** Version -> step, as the calls recorded it; null where the trainer named a version without a step. */
export function stepsOfVersions({ calls }: Trajectory): Map<string, number | null> {
  const policies = calls.flatMap(({ policy }) => [policy.start, policy.end].filter((each) => each !== null));
  return new Map(policies.map(({ version, step }) => [version, step]));
}

export type PolicySteps = {
  /** In the order in which they sampled the row's trained tokens, each once. */
  versions: string[];
  /** null where a trained token's step is unknown. */
  min: number | null;
  max: number | null;
};

/** Of the segments that are trained in this row. */
export function policyStepsOf(row: FlatRow, steps: Map<string, number | null>): PolicySteps {
  const named = row.segments.filter((segment) => segment.trainable).map((segment) => segment.policy_version);
  const numbers = named.map((version) => (version === null ? null : (steps.get(version) ?? null)));
  const known = numbers.filter((step) => step !== null);
  const complete = known.length === numbers.length && known.length > 0;
  return {
    versions: [...new Set(named.filter((version) => version !== null))],
    min: complete ? Math.min(...known) : null,
    max: complete ? Math.max(...known) : null,
  };
}
