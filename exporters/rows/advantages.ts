/** Rows with the advantage of their rollout, for formats that take it ready: one baseline entry a rollout. */
import { z } from "zod";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { type AdvantageMethod, advantageMethods, type FlatRow, groupAdvantages, standingOf } from "../../reconstruct/index.ts";
import type { ExportOptions, ExportReport, FormatOptions } from "../exporter.ts";
import { leaveOutRollout } from "../shapes/left-out.ts";
import type { TrajectoryGroup, TrajectorySource } from "../source/source.ts";
import { rowsOf } from "./rows.ts";

/** For the schema of such a format's own options; the trainer's own way is its default. */
export const advantageOption = (own: AdvantageMethod) =>
  z.enum(advantageMethods).default(own).describe("how a rollout is compared with its group");

type AdvantageOptions = ExportOptions<{ advantage: AdvantageMethod }>;

/** No dummy rows: a rollout that trains nothing has been counted in the baseline. */
export async function* rowsWithAdvantage(
  source: TrajectorySource,
  options: AdvantageOptions,
  report: ExportReport,
  format: FormatOptions = {},
): AsyncIterable<{ row: FlatRow; advantage: number; trajectory: Trajectory }> {
  for await (const group of source.groups()) {
    const advantages = advantagesOf(group, options, report);
    for (const [at, member] of group.members.entries()) {
      const advantage = advantages[at] ?? null;
      if (advantage === null) continue;
      const trajectory = await member.read();
      for (const row of rowsOf(trajectory, options, report, format)) if (!row.dummy) yield { row, advantage, trajectory };
    }
  }
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
