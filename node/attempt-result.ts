/** What an attempt came to, in a kilobyte. */
import { type AttemptResult, shortError } from "../ledger/index.ts";
import type { RolloutOutcome } from "../rollouts/index.ts";
import type { Policy } from "../schema/session-log.ts";
import type { Trajectory } from "../schema/trajectory.ts";

export function attemptResult({ record, trajectory }: RolloutOutcome, payload: AttemptResult["payload"]): AttemptResult {
  const { verdict, summary } = record;
  const error = record.error ?? verdict?.error ?? null;
  return {
    state: verdict?.reward == null ? "failed" : "completed",
    reward: verdict?.reward ?? null,
    components: Object.fromEntries(Object.entries(verdict?.components ?? {}).map(([name, { value }]) => [name, value])),
    stop_reason: record.stop_reason,
    mask_reason: record.mask_reason,
    error: error && shortError(error),
    session_id: record.session_id,
    policies: trajectory === null ? [] : policiesOf(trajectory),
    turns: summary?.turns ?? 0,
    sampled_tokens: summary?.sampled_tokens ?? 0,
    trainable_tokens: summary?.trainable_tokens ?? 0,
    times: record.times,
    payload,
  };
}

/** The session's own, in the order in which they sampled. */
function policiesOf({ calls }: Trajectory): Policy[] {
  const policies = calls.flatMap(({ policy, other_policy }) => (other_policy ? [] : (policy.end ?? policy.start ?? [])));
  return [...new Map(policies.map((policy) => [JSON.stringify(policy), policy])).values()];
}
