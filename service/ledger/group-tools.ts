/** What ends a group before all its rollouts are over. Each field of a set that does so is a bias of its results. */

import { type ForkRound, forkRoundOf } from "../../base/schema/branching.ts";
import { tryJson } from "../../base/schema/read-json.ts";
import { type GroupBias, groupBiases } from "../../base/schema/reasons/group-biases.ts";
import { wordsOf } from "../../base/schema/reasons/meaning.ts";
import { type Allocations, emptyHistory, History, withRewards } from "./allocation/index.ts";
import type { AttemptResult, ResultRow, SetSpec } from "./records.ts";

/** Rows that a group is made of; it may have fewer where it ends early. */
export function sizeOf({ samples, allocation, branching }: SetSpec): number {
  return branching?.leaves ?? allocation?.most ?? samples;
}

/** A group's rollouts have so many places, from 0. */
export function placesOf(spec: SetSpec): number {
  return sizeOf(spec) + spec.over_provision;
}

/** Those from this place on are made when the first ones are over, if they are. */
export function laterFrom(spec: SetSpec): number {
  if (spec.branching !== undefined) return spec.samples;
  return spec.allocation?.first ?? placesOf(spec);
}

/** True if some rollouts begin after others are over. Such a group needs all its places. */
export function hasLater({ allocation, branching }: SetSpec): boolean {
  return allocation !== null || branching !== undefined;
}

/** The round of forks that a place of a group belongs to; null: it is no fork. */
export function forkRound({ branching, samples }: SetSpec, place: number): ForkRound | null {
  return branching === undefined ? null : forkRoundOf(branching, samples, place);
}

/**
 * Returns how many of a group's forks begin now. `open`: places that have not begun, in order. `rows`: the results so far. Returns 0
 * if none was measured, because there is nothing to fork.
 */
export function forksNow(spec: SetSpec, open: readonly number[], rows: readonly ResultRow[]): number {
  const round = forkRound(spec, open[0] ?? 0);
  if (round === null || !rows.some(({ state, payload }) => state === "completed" && payload !== null)) return 0;
  return open.filter((place) => place < round.to).length;
}

/** Where a ledger keeps the history of the whole set; no task has this id. */
export const wholeSet = "";

/** Histories as a ledger keeps them. null: there is none yet. */
type KeptHistories = { task: string | null; set: string | null };

/**
 * Returns how many of a group's later rollouts are made, what is left for other groups, and the histories with this group.
 * `rows`: its first results.
 */
export function moreOf(
  allocations: Allocations,
  { allocation, samples }: SetSpec,
  { task_id, rows, kept }: { task_id: string; rows: readonly ResultRow[]; kept: KeptHistories },
  spare: number,
): { more: number; spare: number; histories: { task: string; set: string } } {
  const measured = rows.flatMap((row) => (stands(row) && row.reward !== null ? [{ reward: row.reward, step: row.oldest_step }] : []));
  const [task, set] = [toHistory(kept.task), toHistory(kept.set)];
  const withThis = (history: History): string => JSON.stringify(withRewards(history, measured));
  const histories = { task: withThis(task), set: withThis(set) };
  if (allocation === null) return { more: 0, spare, histories };
  const rewards = measured.map(({ reward }) => reward);
  return { ...allocations.decide(allocation, { task_id, rewards, samples, task, set }, spare), histories };
}

/** A history that cannot be read counts as an empty one: a finished rollout must not wait for it. */
function toHistory(kept: string | null): History {
  return History.safeParse(tryJson(kept ?? "null")).data ?? emptyHistory;
}

/** What a driver keeps with each group: results that end it; results that start its clock, and the time that is left then. */
export function groupToolsOf(spec: SetSpec): { enough: number | null; cut_after: number | null; cut_ms: number | null } {
  const { samples, over_provision, early_stop, straggler_cut: cut } = spec;
  return {
    enough: early_stop ?? (over_provision > 0 ? samples : null),
    cut_after: cut && Math.ceil(cut.share * samples),
    cut_ms: cut && cut.seconds * 1000,
  };
}

export function biasesOf(spec: SetSpec): GroupBias[] {
  const isOn = {
    over_provision: spec.over_provision > 0,
    early_stop: spec.early_stop !== null,
    straggler_cut: spec.straggler_cut !== null,
    straggler_park: parks(spec),
    allocation: spec.allocation !== null,
    branching: spec.branching !== undefined,
  };
  return wordsOf(groupBiases).filter((name) => isOn[name]);
}

/** Rollouts that run when the clock cuts their group go on in a later group. */
export function parks({ straggler_cut: cut }: SetSpec): boolean {
  return cut?.rest === "park";
}

/** It was measured, and it counts in its group. */
export function stands({ state, mask_reason }: { state: ResultRow["state"]; mask_reason: AttemptResult["mask_reason"] }): boolean {
  return state === "completed" && mask_reason === null;
}

/** Why the rest of a group ends as cancelled. */
export function enoughStand(enough: number): string {
  return `${enough} results of its group stand, which is enough (early_stop, over_provision)`;
}

export const nothingToFork = "no rollout of its group so far was measured, so there is nothing to fork (branching)";
export const noPlaceToFork = "there is no place left in its group where a fork may begin (branching)";
export const notAllocated = "its group got no more samples (allocation)";
export const joinedLate = "its group had ended before it was submitted (early_stop, over_provision, straggler_cut)";
export const cutByClock = "it was slower than its group by more than straggler_cut allows";
export const parkedByClock = `${cutByClock}, and is parked: a rollout of a later group of its task may go on from it`;

/** Parts an over-provisioned group into the rows that it is made of, and the others; both by place. */
export function partGroup(rows: readonly ResultRow[], size: number): { results: ResultRow[]; spare: ResultRow[] } {
  const byWorth = rows.toSorted((one, other) => Number(stands(other)) - Number(stands(one)) || one.index - other.index);
  const chosen = new Set(byWorth.slice(0, size));
  return { results: rows.filter((row) => chosen.has(row)), spare: rows.filter((row) => !chosen.has(row)) };
}
