/** How much of a trajectory its teacher scored, and how far it is from the policy. */
import type { Trajectory } from "../../base/schema/trajectory.ts";

export type Teaching = {
  sampled_tokens: number;
  scored_tokens: number;
  /** Reason -> sampled tokens without a logprob of the teacher. */
  unscored: Record<string, number>;
  /** Tokens that have both logprobs, and the sum over them of recorded less teacher's (nats): an estimate of the reverse KL. */
  compared_tokens: number;
  gap: number;
};

/** Counts what the teacher scored of the rollout's own samples. */
export function teachingOf({ nodes }: Pick<Trajectory, "nodes">): Teaching {
  const sum: Teaching = { sampled_tokens: 0, scored_tokens: 0, unscored: {}, compared_tokens: 0, gap: 0 };
  for (const node of nodes) {
    if (node.kind !== "sampled" || node.reason === "replayed") continue;
    sum.sampled_tokens += node.token_ids.length;
    for (let at = 0; at < node.token_ids.length; at++) {
      const scored = node.teacher?.logprobs[at] ?? null;
      const recorded = node.logprobs?.[at] ?? null;
      if (scored === null) {
        const reason = node.teacher?.reason ?? "no_logprob";
        sum.unscored[reason] = (sum.unscored[reason] ?? 0) + 1;
        continue;
      }
      sum.scored_tokens++;
      if (recorded === null) continue;
      sum.compared_tokens++;
      sum.gap += recorded - scored;
    }
  }
  return sum;
}

/** Did the teacher answer? If not, asking again may give scores. */
export function wasAnswered({ nodes }: Pick<Trajectory, "nodes">): boolean {
  return !nodes.some(({ teacher }) => teacher?.reason === "not_answered" || teacher?.reason === "refused");
}
