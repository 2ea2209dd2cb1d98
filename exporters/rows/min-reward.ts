/** Which rollouts are good enough to imitate. */
import { z } from "zod";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { ExportReport } from "../exporter.ts";
import { leaveOutRollout } from "../shapes/left-out.ts";

/** For the schema of an imitating format's own options. */
export const minReward = z.number().optional().describe("only rollouts with at least this reward (default: all, measured or not)");

/** Counts the rollout as left out where it is not. */
export function isGoodEnough({ reward }: Trajectory, min: number | undefined, report: ExportReport): boolean {
  if (min === undefined || (reward !== null && reward >= min)) return true;
  leaveOutRollout(report, reward === null ? "no_reward" : "low_reward");
  return false;
}
