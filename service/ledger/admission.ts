/**
 * How many groups of a set with `max_version_lag` may be begun. A trainer takes `groups_per_step` groups for each policy
 * step, in the order in which they became whole. So the group at a place of that order is trained at a known step, and a
 * group may be begun while that step is within the bound of the one that would sample it. A group that still runs may be
 * overtaken by all others: while the oldest of them is within the bound, no more are begun than may be trained before it.
 * Nothing of this is one process's own: steps, counts and cursors are the ledger's.
 */
import type { DatabaseRow } from "./database-row.ts";
import type { ResultRow, SetSpec } from "./records.ts";

export type TrainerPace = {
  /** The policy step in force; null: the weights have no name with a step. */
  step: number | null;
  /** The trainer had taken so many groups when it came to this step. */
  since: { step: number; groups: number };
  /** The lowest step at which a group was begun that is not whole, of those that are within the bound; null: there is none. */
  oldest: number | null;
};

/** `isAnyWhole`: of its groups. `oldest`: as a database says it. */
export function paceOf(
  set: DatabaseRow,
  step: number | null,
  { isAnyWhole, oldest }: { isAnyWhole: boolean; oldest: DatabaseRow[string] | undefined },
): TrainerPace {
  const said = { step: set.since_step == null ? null : Number(set.since_step), groups: Number(set.since_groups) };
  return { step, since: paceBegins(step ?? 0, said, isAnyWhole), oldest: oldest == null ? null : Number(oldest) };
}

/** The lowest step at which a group that is not whole may have been begun to be within the set's bound. */
export function lowestStep({ max_version_lag }: Pick<SetSpec, "max_version_lag">, step: number | null): number {
  return (step ?? 0) - (max_version_lag ?? 0);
}

/** Since the set's beginning; null: it has no bound. Without a step nothing can be held against the bound, so none is begun. */
export function groupsAllowed(
  { max_version_lag: lag, groups_per_step: groups }: Pick<SetSpec, "max_version_lag" | "groups_per_step">,
  { step, since, oldest }: TrainerPace,
): number | null {
  if (lag === null || groups === null) return null;
  if (step === null) return 0;
  return since.groups + (Math.min(step, oldest ?? step) - since.step + lag + 1) * groups;
}

/**
 * From where steps are counted. `said`: the consumer's last word; before it, the step of the set's first admission. A trainer
 * has taken nothing while no group is whole, and one that goes back behind the beginning begins there.
 */
export function paceBegins(step: number, said: { step: number | null; groups: number }, isAnyWhole: boolean): TrainerPace["since"] {
  if (said.step === null || (said.groups === 0 && !isAnyWhole)) return { step, groups: 0 };
  return { step: said.groups === 0 ? Math.min(said.step, step) : said.step, groups: said.groups };
}

/** How far a result is behind a policy step. */
export function lagAt(
  step: number | null,
  oldest_step: number | null,
  { max_version_lag: bound }: Pick<SetSpec, "max_version_lag">,
): Pick<ResultRow, "policy_step" | "lag" | "stale"> {
  const lag = step === null || oldest_step === null ? null : step - oldest_step;
  return { policy_step: step, lag, stale: lag === null || bound === null ? null : lag > bound };
}
