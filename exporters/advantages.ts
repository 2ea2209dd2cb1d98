/** Advantages for formats that take them ready: one baseline entry a rollout, however many rows it has. */
import { z } from "zod";
import { advantageMethods, groupAdvantages, standingOf } from "../reconstruct/index.ts";
import type { ExportOptions, ExportReport } from "./exporter.ts";
import { addOne } from "./left-out.ts";
import type { TrajectoryGroup } from "./source.ts";

/** For the schema of such a format's own options. */
export const advantage = z.enum(advantageMethods).default("grpo").describe("how a rollout is compared with its group");

/** One for each member, under the cut-off rules; null where the rollout has none, which is in the report with its reason. */
export function advantagesOf(
  group: TrajectoryGroup,
  { cutOff, own }: ExportOptions<{ advantage: z.infer<typeof advantage> }>,
  report: ExportReport,
): (number | null)[] {
  const members = group.members.map((member) => {
    const { reward, in_loss, in_baseline } = standingOf(member, cutOff);
    return { rollout_id: member.rollout_id ?? member.trajectory_id, reward, in_loss, in_baseline };
  });
  const { advantages, reasons } = groupAdvantages(members, own.advantage);
  for (const reason of reasons) if (reason !== null) addOne(report.left_out_rollouts, reason);
  return advantages;
}
