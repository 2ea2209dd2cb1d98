/** What an attempt came to, in a kilobyte. */

import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { RolloutOutcome } from "../../rollouts/index.ts";
import { attemptFigures } from "../figures/index.ts";
import { type AttemptResult, shortError } from "../ledger/index.ts";

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
    ...sampledBy(trajectory?.calls ?? []),
    forked_from: record.forked_from,
    turns: summary?.turns ?? 0,
    sampled_tokens: summary?.sampled_tokens ?? 0,
    trainable_tokens: summary?.trainable_tokens ?? 0,
    figures: trajectory && attemptFigures(trajectory),
    resume: record.resume,
    user: record.user,
    times: record.times,
    payload,
  };
}

/** The session's own policies, in the order in which they sampled; a call that spans a weight update has two. */
export function sampledBy(calls: Trajectory["calls"]): Pick<AttemptResult, "policies" | "oldest_step" | "newest_step"> {
  // Replayed tokens belong to the rollout that sampled them.
  const own = calls.filter(({ other_policy, replayed_from }) => !other_policy && replayed_from === null);
  const named = own.flatMap(({ policy: { start, end } }) => [start ?? [], end ?? []].flat());
  const sampled = own.filter(({ sampled_length, usage }) => (sampled_length ?? usage?.sampled_tokens ?? 0) > 0);
  const all = sampled.flatMap(({ policy: { start, end } }) => [start ?? end, end ?? start]);
  const steps = all.flatMap((policy) => policy?.step ?? []);
  const isKnown = steps.length > 0 && steps.length === all.length;
  return {
    policies: [...new Map(named.map((policy) => [JSON.stringify(policy), policy])).values()],
    oldest_step: isKnown ? Math.min(...steps) : null,
    newest_step: isKnown ? Math.max(...steps) : null,
  };
}
