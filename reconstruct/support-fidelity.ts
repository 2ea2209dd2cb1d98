/** Counts the calls whose sampling left out tokens, and those of them whose kept tokens are on record. */
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";

export type SupportFidelity = {
  /** Calls that sampled something with `top_p`, `top_k` or `min_p`. */
  calls: number;
  sampled_tokens: number;
  /** Tokens sampled by calls whose kept tokens are on record. */
  recorded_tokens: number;
  /** Number of calls without a record, by reason. */
  missing: Record<string, number>;
};

export const noSupport = (): SupportFidelity => ({ calls: 0, sampled_tokens: 0, recorded_tokens: 0, missing: {} });

/** Records of older releases say nothing of such calls, and are not counted. */
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
