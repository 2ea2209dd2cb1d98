/** Rows with the advantage of their rollout, for formats that take it ready: one baseline entry a rollout. */
import { z } from "zod";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import {
  type AdvantageMethod,
  advantageMethods,
  type Credit,
  type CreditLeaf,
  credits,
  type FlatRow,
  groupAdvantages,
  perToken,
  standingOf,
  treeCredit,
} from "../../reconstruct/index.ts";
import type { ExportOptions, ExportReport, FormatOptions } from "../exporter.ts";
import { leaveOutRollout } from "../shapes/left-out.ts";
import type { TrajectoryGroup, TrajectorySource } from "../source/source.ts";
import { rowsOf } from "./rows.ts";

/** For the schema of such a format's own options; the trainer's own way is its default. */
export const advantageOption = (own: AdvantageMethod) =>
  z.enum(advantageMethods).default(own).describe("how a rollout is compared with its group");

/** The option of formats with an advantage for each token. */
export const creditOption = z
  .enum(credits)
  .default("outcome")
  .describe(
    "what a token of a group with forks is worth: `outcome`, its rollout's advantage; `tree`, the mean over all rollouts that go on from it; `siblings`, that, and how its turn compares with the others at its place",
  );

type AdvantageOptions = ExportOptions<{ advantage: AdvantageMethod; credit?: Credit }>;

/** No dummy rows: a rollout that trains nothing has been counted in the baseline. */
export async function* rowsWithAdvantage(
  source: TrajectorySource,
  options: AdvantageOptions,
  report: ExportReport,
  format: FormatOptions = {},
): AsyncIterable<{ row: FlatRow; advantage: number; advantages: number[]; trajectory: Trajectory }> {
  for await (const group of source.groups()) {
    const advantages = advantagesOf(group, options, report);
    const worth = await worthOfCalls(group, advantages, options.own.credit ?? "outcome");
    for (const [at, member] of group.members.entries()) {
      const advantage = advantages[at] ?? null;
      if (advantage === null) continue;
      const trajectory = await member.read();
      for (const row of rowsOf(trajectory, options, report, format))
        if (!row.dummy) yield { row, advantage, advantages: ofTokens(row, advantage, worth), trajectory };
    }
  }
}

/** One for each token; 0 where it is not trained. */
function ofTokens(row: FlatRow, advantage: number, worth: Map<string, number> | null): number[] {
  const ofCalls = perToken(row, ({ call_id }) => worth?.get(call_id) ?? advantage);
  return row.loss_mask.map((mask, at) => (mask === 1 ? (ofCalls[at] ?? 0) : 0));
}

/** By call id; null: each token has its rollout's advantage. Reads each member once more, for the calls that it shares. */
async function worthOfCalls(group: TrajectoryGroup, advantages: (number | null)[], credit: Credit): Promise<Map<string, number> | null> {
  if (credit === "outcome") return null;
  const leaves: CreditLeaf[] = [];
  for (const [at, member] of group.members.entries()) {
    const { calls } = await member.read();
    leaves.push({
      advantage: advantages[at] ?? null,
      calls: calls.map(({ call_id, parent_call_id }) => ({ call_id, parent_call_id })),
    });
  }
  return treeCredit(leaves, credit);
}

/** One for each member, under the rules of the export; null where the rollout has none, which is in the report with its reason. */
function advantagesOf(group: TrajectoryGroup, { own, ...rules }: AdvantageOptions, report: ExportReport): (number | null)[] {
  const members = group.members.map((member) => {
    const { reward, in_loss, in_baseline } = standingOf(member, rules);
    return { rollout_id: member.rollout_id ?? member.trajectory_id, reward, in_loss, in_baseline };
  });
  const { advantages, reasons } = groupAdvantages(members, own.advantage);
  for (const reason of reasons) if (reason !== null) leaveOutRollout(report, reason);
  return advantages;
}
