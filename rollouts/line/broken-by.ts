/** Finds which infrastructure failure broke an attempt, and whether another attempt makes sense. */
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";

/** By a bug of ours, which meets the next draw as well: an agent that finds one must not get another draw by it. */
const notDrawnAgain: ReadonlySet<ErrorCode> = new Set(["internal", "rollout_set_aside", "replay_diverged"]);

/**
 * A missing image breaks the next attempt too, which begins seconds later on the same container engine. A cancelled
 * rollout needs no other attempt.
 */
export const failsAgainHere: ReadonlySet<ErrorCode> = new Set(["image_pull_failed", "image_build_failed", "cancelled"]);

/** Returns the infrastructure failure in its sandbox or grading; null: the rollout is done. */
export function brokenBy({ error, verdict }: RolloutRecord): ErrorCode | null {
  const isUngraded = verdict?.status === "infra_error" || verdict?.status === "cancelled";
  const codes = [error?.code, isUngraded ? (verdict.error?.code ?? "cancelled") : undefined] as (ErrorCode | undefined)[];
  return codes.find((code) => code !== undefined && errorCodes[code] === "infrastructure" && !notDrawnAgain.has(code)) ?? null;
}
