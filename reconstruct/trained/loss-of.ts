/** Decides whether a rollout counts in the loss and in its group's baseline. */
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import type { MaskReason } from "../../base/schema/reasons/left-out.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { ErrorRecord } from "../../base/schema/session-log.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";

/** What the harness's end means for the loss. */
type Ended = { stop_reason: string; slow_engine: boolean };

/** Stops that are the policy's own doing and are trained with the reward they got. */
const cutByItself = new Set(["budget_spent", "call_failed", "context_length_exceeded", "harness_timeout"]);

export function lossOf(
  run: Ended | null,
  verdict: Verdict | null,
  error: ErrorRecord | null,
  calls: number,
): Pick<Trajectory, "status" | "in_loss" | "in_baseline" | "mask_reason"> {
  const masked = (status: Trajectory["status"], mask_reason: string) => ({ status, in_loss: false, in_baseline: false, mask_reason });
  if (error && errorCodes[error.code as ErrorCode] === "infrastructure")
    return masked(error.code === "cancelled" ? "cancelled" : "failed", error.code);
  // Nothing was sampled: whatever was graded is not the policy's doing, and has no place in a baseline.
  if (calls === 0) return masked("failed", "no_call_seen" satisfies MaskReason);
  if (!verdict) return masked("failed", error?.code ?? ("not_graded" satisfies MaskReason));
  if (verdict.reward === null) return masked("failed", verdict.error?.code ?? verdict.status);
  const status = run && cutByItself.has(run.stop_reason) ? "cut" : "graded";
  if (run?.slow_engine) return masked(status, "cut_by_the_clock_while_the_engine_was_slow" satisfies MaskReason);
  return { status, in_loss: true, in_baseline: true, mask_reason: null };
}
