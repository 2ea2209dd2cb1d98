/**
 * Decisions that a trainer may change about whole rollouts and kinds of call when it takes the rows. The record keeps the
 * decision of the rollout's end. Changeable are only rollouts that were cut off, and those without a measurement.
 */
import { AlidadeError } from "../../base/errors.ts";
import { isNeverTrained, type RequestClass } from "../../base/schema/session-spec.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";

/**
 * train: with the reward it got (the default for a budget or a full context: running out is the policy's own doing).
 * mask: in neither loss nor baseline (the default where the clock ran out while the engine was slow: that says nothing
 * about the policy). baseline: the others are compared with it, and it is not trained itself. penalise: trained with `by`
 * taken off its reward, for a policy that must learn to finish. zero: trained as a failure, with the reward 0.
 */
export type CutOffRule = { action: "train" | "mask" | "baseline" | "zero" } | { action: "penalise"; by: number };

/** By cause: a `mask_reason` or `stop_reason` of a cut rollout, such as `budget_spent` or `harness_timeout`. */
export type CutOffRules = Record<string, CutOffRule>;

/**
 * What work is worth that ended and was not measured: a grader, an engine or a machine failed or was too slow. null: nothing is
 * known of it, so it is in neither loss nor baseline. zero: trained as a failure, so that a policy that could bring about
 * such an end gains nothing by it, at the price of blaming it for what the machine did.
 */
export type Unmeasured = "null" | "zero";

export type LossRules = {
  /** Default: null. */
  unmeasured: Unmeasured;
  /** Default: as recorded. */
  cutOff: CutOffRules;
  /**
   * Kinds of call that are not trained here though the session trains them, for example `compaction` (a summary is
   * trained by default because the work goes on from it) or `sub_agent` (trained by default with the rollout's reward).
   */
  leaveOut: readonly RequestClass[];
};

/** What the rules of a whole rollout are. */
export type StandingRules = Pick<LossRules, "cutOff" | "unmeasured">;

/** Ends that say nothing about any work: the run was stopped, its process died, or nothing was sampled. */
const noWork: ReadonlySet<string> = new Set(["cancelled", "interrupted", "no_call_seen"]);

/** The rollout's place in loss and baseline, and its reward, under the rules. */
export type Standing = { in_loss: boolean; in_baseline: boolean; reward: number | null; rule: CutOffRule | null };

/** The fields that the rules read; an exporter keeps them for every rollout of a group. */
export type LossFacts = Pick<Trajectory, "purpose" | "status" | "mask_reason" | "stop_reason" | "in_loss" | "in_baseline" | "reward">;

export function standingOf(trajectory: LossFacts, { cutOff, unmeasured }: StandingRules): Standing {
  const { in_loss, in_baseline, reward } = trajectory;
  if (unmeasured === "zero" && isUnmeasured(trajectory) && !isNeverTrained(trajectory.purpose))
    return { in_loss: true, in_baseline: true, reward: 0, rule: { action: "zero" } };
  const cause = cutOffCause(trajectory);
  const rule = cause !== null && Object.hasOwn(cutOff, cause) ? (cutOff[cause] ?? null) : null;
  if (rule === null) return { in_loss, in_baseline, reward, rule };
  if (rule.action === "baseline")
    return { in_loss: false, in_baseline: !isNeverTrained(trajectory.purpose) && reward !== null, reward, rule };
  if (rule.action === "mask") return { in_loss: false, in_baseline: false, reward, rule };
  if (rule.action === "zero" && !isNeverTrained(trajectory.purpose)) return { in_loss: true, in_baseline: true, reward: 0, rule };
  // Evaluations are never trained, and what was not graded has no reward to train with.
  if (isNeverTrained(trajectory.purpose) || reward === null) return { in_loss, in_baseline, reward, rule: null };
  return { in_loss: true, in_baseline: true, reward: rule.action === "penalise" ? reward - rule.by : reward, rule };
}

/** The trajectory as the rules have it, for forms without rows: rows apply them themselves. */
export function underRules(trajectory: Trajectory, rules: StandingRules): Trajectory {
  const { rule: _, ...standing } = standingOf(trajectory, rules);
  return { ...trajectory, ...standing };
}

/** Its work ended, and nothing was measured of it. */
export function isUnmeasured({ status, mask_reason, reward }: Pick<LossFacts, "status" | "mask_reason" | "reward">): boolean {
  return status === "failed" && reward === null && mask_reason !== null && !noWork.has(mask_reason);
}

/** Why the rollout was cut off; null where it was not. */
export function cutOffCause({
  status,
  mask_reason,
  stop_reason,
}: Pick<LossFacts, "status" | "mask_reason" | "stop_reason">): string | null {
  return status === "cut" ? (mask_reason ?? stop_reason) : null;
}

/** `budget_spent=mask`, `harness_timeout=penalise:0.5` … Throws `config_invalid` with the words that there are. */
export function parseCutOffRules(words: readonly string[]): CutOffRules {
  const rules: CutOffRules = {};
  for (const word of words) {
    const [cause = "", action = "", ...rest] = word.split("=");
    const rule = toRule(action);
    if (cause === "" || rule === null || rest.length > 0)
      throw new AlidadeError(
        "config_invalid",
        `"${word}" is no cut-off rule: write CAUSE=train, CAUSE=mask, CAUSE=baseline, CAUSE=zero or CAUSE=penalise:NUMBER`,
        {
          param: "cut_off",
        },
      );
    if (cause === "grader_timeout")
      throw new AlidadeError(
        "config_invalid",
        `"${word}": a grading without time means that the rollout was not measured; it was not cut off, so use --unmeasured`,
        {
          param: "cut_off",
        },
      );
    rules[cause] = rule;
  }
  return rules;
}

function toRule(action: string): CutOffRule | null {
  if (action === "train" || action === "mask" || action === "baseline" || action === "zero") return { action };
  const by = /^penalise:(\d+(?:\.\d+)?)$/.exec(action)?.[1];
  return by === undefined ? null : { action: "penalise", by: Number(by) };
}
