/** What a set asks to be done with results of old or several policies, before rows are made of them. */

import type { MaskReason } from "../base/schema/reasons/left-out.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { type GroupVersions, lagAt, type OnStale, type ResultRow, type SetSpec } from "./ledger/index.ts";

type LagBound = Pick<SetSpec, "max_version_lag">;

/**
 * The rows with their lag at one step. `asked`: the trainer's own, which knows best when it trains; else the step in force when
 * the last of them ended, so that a line is the same whenever it is read.
 */
export function atStep(rows: readonly ResultRow[], bounds: LagBound, asked: number | null): ResultRow[] {
  const steps = rows.flatMap(({ policy_step }) => policy_step ?? []);
  const step = asked ?? (steps.length === 0 ? null : Math.max(...steps));
  return rows.map((row) => ({ ...row, ...lagAt(step, row.oldest_step, bounds) }));
}

/** The oldest step whose tokens are trained; null: any. All rows have one step (`atStep`). */
export function oldestTrained(rows: readonly ResultRow[], { max_version_lag, on_stale }: LagBound & { on_stale: OnStale }): number | null {
  const step = rows[0]?.policy_step ?? null;
  return max_version_lag === null || on_stale !== "mask" || step === null ? null : step - max_version_lag;
}

export function isLeftOut({ stale }: ResultRow, { on_stale }: { on_stale: OnStale }): boolean {
  return on_stale === "leave_out" && stale === true;
}

/** More than one policy sampled them. */
export function isMixed(rows: readonly ResultRow[]): boolean {
  return new Set(rows.flatMap(({ policies }) => policies).map(policyKey)).size > 1;
}

/** Rollouts of the group that its policy did not sample alone: the one that sampled most rollouts alone, the newest of equals. */
export function othersOfGroup(rows: readonly ResultRow[], { group_versions }: { group_versions: GroupVersions }): Set<string> {
  if (group_versions === "any" || !isMixed(rows)) return new Set();
  const alone = Map.groupBy(
    rows.filter(({ policies }) => policies.length === 1),
    ({ policies }) => policies.map(policyKey).join(),
  );
  const [most = []] = [...alone.values()].toSorted((one, other) => other.length - one.length || newestOf(other) - newestOf(one));
  const kept = new Set(most);
  return new Set(rows.filter((row) => row.policies.length > 0 && !kept.has(row)).map(({ rollout_id }) => rollout_id));
}

export function masked(trajectory: Trajectory): Trajectory {
  const mask_reason: MaskReason = "other_policy_than_group";
  return { ...trajectory, in_loss: false, in_baseline: false, mask_reason: trajectory.mask_reason ?? mask_reason };
}

const policyKey = (policy: ResultRow["policies"][number]): string => JSON.stringify([policy.version, policy.step]);

function newestOf([row]: ResultRow[]): number {
  return row?.policies[0]?.step ?? Number.NEGATIVE_INFINITY;
}
