/** Which weights sampled a row's trained tokens, as trainers ask for it. */
import type { FlatRow } from "../reconstruct/index.ts";

export type PolicySteps = {
  /** In the order in which they sampled, each once. */
  versions: string[];
  /** Lowest and highest step; null where the step of a trained token is unknown, and where nothing is trained. */
  min: number | null;
  max: number | null;
};

export function policyStepsOf(row: FlatRow): PolicySteps {
  const trained = row.segments.filter((segment) => segment.trainable);
  const steps = trained.map((segment) => segment.policy_step).filter((step) => step !== null);
  const isComplete = trained.length > 0 && steps.length === trained.length;
  return {
    versions: [...new Set(trained.map((segment) => segment.policy_version).filter((version) => version !== null))],
    min: isComplete ? Math.min(...steps) : null,
    max: isComplete ? Math.max(...steps) : null,
  };
}
