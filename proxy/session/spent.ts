/** What a session has used of its budgets, added up call by call. */
import type { Budgets } from "../../base/schema/session-spec.ts";
import type { Call } from "./call.ts";

export type BudgetName = keyof Budgets;

export type Spent = {
  /** Calls that count as turns: not the harness's repetition of one that failed. */
  readonly turns: number;
  readonly promptTokens: number;
  /** Tokens of finished calls; a running call counts its own. */
  readonly sampledTokens: number;
  /** When the first call was begun; null before there is one. */
  readonly firstCall: number | null;
};

export const nothingSpent: Spent = { turns: 0, promptTokens: 0, sampledTokens: 0, firstCall: null };

export function afterBegun(spent: Spent, { begun }: Call): Spent {
  const turns = spent.turns + (begun.retry_of === null ? 1 : 0);
  return { ...spent, turns, firstCall: Math.min(spent.firstCall ?? begun.time, begun.time) };
}

/**
 * Charges a request once, with the call that was answered. A failed call is not charged, because its client retries; a
 * call that was cut by a spent budget is. The tokens of a replayed call were charged where they were sampled.
 */
export function afterFinished(spent: Spent, { outcome, idText, promptLength }: Call): Spent {
  if (outcome?.replayed_from !== undefined) return spent;
  if (outcome?.error && outcome.error.code !== "budget_spent") return spent;
  const sampled = idText ? idText.length - promptLength : outcome?.usage.sampled_tokens;
  return {
    ...spent,
    promptTokens: spent.promptTokens + (outcome?.usage.prompt_tokens ?? promptLength),
    sampledTokens: spent.sampledTokens + (sampled ?? 0),
  };
}

/**
 * The budget that ended a session, after a request that was refused for `refused` (null: it was taken, or refused for
 * something else). Places are free again when calls end: a session that goes on after such a refusal was not ended by it.
 */
export function endedBy(before: BudgetName | null, refused: BudgetName | null): BudgetName | null {
  if (before === null || !isMomentary(before)) return refused !== null && !isMomentary(refused) ? refused : (before ?? refused);
  return refused;
}

function isMomentary(name: BudgetName): boolean {
  return name === "max_concurrent_calls";
}
