/** What an attempt came to, in a kilobyte. */
import type { AlidadeError } from "../errors.ts";
import type { AttemptResult } from "../ledger/index.ts";
import type { RolloutOutcome } from "../rollouts/index.ts";
import type { Policy } from "../schema/session-log.ts";
import type { Trajectory } from "../schema/trajectory.ts";

/** An error may quote an engine's traceback; the whole of it stands in the attempt's record. */
const longestMessage = 500;

export function attemptResult({ record, trajectory }: RolloutOutcome, payload: AttemptResult["payload"]): AttemptResult {
  const { verdict, summary } = record;
  const error = record.error ?? verdict?.error ?? null;
  return {
    state: verdict?.reward == null ? "failed" : "completed",
    reward: verdict?.reward ?? null,
    components: Object.fromEntries(Object.entries(verdict?.components ?? {}).map(([name, { value }]) => [name, value])),
    stop_reason: record.stop_reason,
    mask_reason: record.mask_reason,
    error: error && { code: error.code, message: error.message.slice(0, longestMessage) },
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

/** An attempt that could not begin. */
export function brokenAttempt({ code, message }: AlidadeError): AttemptResult {
  return {
    state: "failed",
    reward: null,
    components: {},
    stop_reason: code,
    mask_reason: code,
    error: { code, message: message.slice(0, longestMessage) },
    session_id: null,
    policies: [],
    turns: 0,
    sampled_tokens: 0,
    trainable_tokens: 0,
    times: {},
    payload: null,
  };
}
