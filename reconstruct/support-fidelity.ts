/** Counts the calls that sampled with `top_p`, `top_k` or `min_p`, and how far their kept tokens are on record. */
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";

export type SupportFidelity = {
  /** Such calls with at least one sampled token. */
  calls: number;
  /** Tokens that these calls sampled. */
  sampled_tokens: number;
  /** Those of calls whose kept tokens are on record. */
  recorded_tokens: number;
  /** Number of calls without a record, by reason. */
  missing: Record<string, number>;
};

export const noSupport = (): SupportFidelity => ({ calls: 0, sampled_tokens: 0, recorded_tokens: 0, missing: {} });

/** Counts only calls whose record has `support`. In records of older releases none has it. */
export function supportFidelityOf({ calls }: Pick<Trajectory, "calls">): SupportFidelity {
  const sum = noSupport();
  for (const call of calls) if (call.support !== undefined && call.replayed_from === null) addCall(sum, call);
  return sum;
}

function addCall(sum: SupportFidelity, { support = "not_told", sampled_length }: CallRecord): void {
  const tokens = sampled_length ?? 0;
  if (tokens === 0) return;
  sum.calls++;
  sum.sampled_tokens += tokens;
  if (support === "recorded") sum.recorded_tokens += tokens;
  else sum.missing[support] = (sum.missing[support] ?? 0) + 1;
}
