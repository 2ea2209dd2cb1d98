/** What the infrastructure did to an attempt, and whether another one makes sense. */
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";

/** By a bug of ours, which meets the next draw as well: an agent that finds one must not get another draw by it. */
const notDrawnAgain: ReadonlySet<ErrorCode> = new Set(["internal", "rollout_set_aside", "replay_diverged"]);

/**
 * An image that cannot be had is missed by the next attempt too: it begins seconds later on the same container engine. A rollout that
 * was stopped is not wanted again.
 */
export const failsAgainHere: ReadonlySet<ErrorCode> = new Set(["image_pull_failed", "image_build_failed", "cancelled"]);

/** In its sandbox or in its grading; null where it is done. */
export function brokenBy({ error, verdict }: RolloutRecord): ErrorCode | null {
  const isUngraded = verdict?.status === "infra_error" || verdict?.status === "cancelled";
  const codes = [error?.code, isUngraded ? (verdict.error?.code ?? "cancelled") : undefined] as (ErrorCode | undefined)[];
  return codes.find((code) => code !== undefined && errorCodes[code] === "infrastructure" && !notDrawnAgain.has(code)) ?? null;
}
