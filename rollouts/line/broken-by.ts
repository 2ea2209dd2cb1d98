/** Finds which infrastructure failure broke an attempt, and whether another attempt makes sense. */
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";

/**
 * No attempt follows these codes, here or later. A bug of ours would break the next attempt too. An agent must not get another draw by
 * causing a bug, or a replay that diverges.
 */
export const neverAgain = ["internal", "rollout_set_aside", "replay_diverged"] as const satisfies ErrorCode[];

/**
 * A missing image breaks the next attempt too, which begins seconds later on the same container engine. A cancelled
 * rollout needs no other attempt.
 */
export const againLater = ["image_pull_failed", "image_build_failed", "cancelled"] as const satisfies ErrorCode[];

const later: ReadonlySet<ErrorCode> = new Set(againLater);
const never: ReadonlySet<ErrorCode> = new Set(neverAgain);

/** Would another attempt in this process fail as well? */
export function failsAgainHere(code: ErrorCode): boolean {
  return later.has(code);
}

/** Returns the infrastructure failure in its sandbox or grading; null: the rollout is done. */
export function brokenBy({ error, verdict }: RolloutRecord): ErrorCode | null {
  const isUngraded = verdict?.status === "infra_error" || verdict?.status === "cancelled";
  const codes = [error?.code, isUngraded ? (verdict.error?.code ?? "cancelled") : undefined] as (ErrorCode | undefined)[];
  return codes.find((code) => code !== undefined && errorCodes[code] === "infrastructure" && !never.has(code)) ?? null;
}
