/** Which weights sampled a row's trained tokens, as trainers ask for it. */

import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { FlatRow } from "../../reconstruct/index.ts";

export type PolicySteps = {
  /** In the order in which they sampled, each once. */
  versions: string[];
  /** The same as steps in decimal digits, by name where the step is unknown. */
  numbers: string[];
  /** Lowest and highest step; null where one of them is unknown. */
  min: number | null;
  max: number | null;
};

/** A dummy row trains nothing and carries the steps of all calls of the rollout, because its reward is theirs. */
export function policyStepsOf(row: FlatRow, { calls }: Trajectory): PolicySteps {
  if (row.dummy) return toSteps(calls.map(({ policy }) => policy.end ?? policy.start ?? unknown));
  const trained = row.segments.filter((segment) => segment.trainable);
  return toSteps(trained.map(({ policy_version, policy_step }) => ({ version: policy_version, step: policy_step })));
}

const unknown = { version: null, step: null };

function toSteps(policies: { version: string | null; step: number | null }[]): PolicySteps {
  const steps = policies.map(({ step }) => step).filter((step) => step !== null);
  const isComplete = policies.length > 0 && steps.length === policies.length;
  return {
    versions: [...new Set(policies.map(({ version }) => version).filter((version) => version !== null))],
    numbers: [...new Set(policies.map(({ version, step }) => step?.toString() ?? version).filter((number) => number !== null))],
    min: isComplete ? Math.min(...steps) : null,
    max: isComplete ? Math.max(...steps) : null,
  };
}
