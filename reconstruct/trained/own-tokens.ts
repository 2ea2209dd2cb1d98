/** What a fidelity report counts as sampled. Those of earlier versions count replayed tokens too, as `excluded` for `replayed`. */
import type { Trajectory } from "../../base/schema/trajectory.ts";

type SampledCounts = Pick<Trajectory["fidelity"], "sampled_tokens" | "excluded">;

/** Without tokens of another rollout's record. */
export function ownTokens({ sampled_tokens, excluded }: SampledCounts): SampledCounts {
  const { replayed = 0, ...own } = excluded;
  return { sampled_tokens: sampled_tokens - replayed, excluded: own };
}
