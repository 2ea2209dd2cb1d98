/**
 * May a call's tokens be trained, and if not, why? Two tables, read from the top; the first reason that fits is recorded.
 * Facts about the call come before decisions about the rollout, so lifting a mask later shows what remains.
 *
 * `purpose: live` is trained unless the caller says otherwise (`in_loss: false`): a person records a session of their own
 * to train on it. `purpose: eval` never is: a model must not be trained on its own measurement.
 */

import type { z } from "zod";
import { samePolicy } from "../../schema/same-policy.ts";
import type { Policy, WeightSpan } from "../../schema/session-log.ts";
import type { Purpose, RequestClass } from "../../schema/session-spec.ts";
import type { CallOutcome, ExclusionReason } from "../../schema/trajectory.ts";
import { findMisalignment } from "../../tokens/alignment.ts";
import type { CallHistory } from "../log/read-log.ts";

export type Exclusion = z.infer<typeof ExclusionReason>;

type Judged = {
  /** What the log holds no more of it. */
  damage: string | null;
  outcome: CallOutcome;
  /** The call of another rollout that sampled this turn. */
  replayed_from: string | null;
  /** A model sampled it that the session does not train. */
  other_policy: boolean;
  request_class: RequestClass;
  /** The session's own word on which kinds of call are trained. */
  train_classes: readonly RequestClass[];
  purpose: Purpose;
  in_loss: boolean;
  sandboxed: boolean;
};

/** What of a whole trajectory decides about its calls. */
export type LossHead = Pick<Judged, "purpose" | "sandboxed" | "train_classes" | "in_loss">;

export function lossHeadOf({ purpose, sandboxed, train_classes, in_loss }: LossHead): LossHead {
  return { purpose, sandboxed, train_classes, in_loss };
}

const callReasons: [Exclusion, (call: Judged) => boolean][] = [
  ["damaged", (call) => call.damage !== null],
  ["failed", (call) => call.outcome === "failed"],
  // The harness used a part of the turn that the policy did not choose: the rest was not its action. In a sandbox the policy's own
  // commands can leave an answer, or send a part of it, so a turn that was sampled whole is its action.
  ["undelivered", (call) => !call.sandboxed && (call.outcome === "undelivered" || call.outcome === "partial")],
  ["replayed", (call) => call.replayed_from !== null],
  ["other_policy", (call) => call.other_policy],
  ["auxiliary", (call) => !call.train_classes.includes(call.request_class)],
  ["not_for_training", (call) => call.purpose === "eval"],
  ["masked_rollout", (call) => !call.in_loss],
];

/** Why the call's turn is not trained, whatever its tokens; null where it may be. */
export function exclusionOfCall(call: Judged): Exclusion | null {
  return callReasons.find(([, fits]) => fits(call))?.[0] ?? null;
}

const tokenReasons: [Exclusion, (call: CallHistory, hasPrompt: boolean) => boolean][] = [
  ["no_token_ids", ({ finished }, hasPrompt) => !finished?.sampled_ids || !hasPrompt],
  // The recorder compares with the engine's own count as well, which is not in the ids.
  [
    "misaligned",
    ({ finished }) =>
      finished?.missing?.startsWith("misaligned") === true ||
      findMisalignment(finished?.sampled_ids ?? [], finished?.logprobs ?? null) !== null,
  ],
  // One missing logprob excludes the whole call: a row with holes has no importance ratio.
  ["no_logprob", ({ finished }) => !finished?.logprobs || finished.logprobs.includes(null)],
  ["unattributed_policy", changedPolicy],
];

/** Why the call's tokens cannot be trained by their logprobs; null where they can. `hasPrompt`: its prompt ids are known. */
export function exclusionOfTokens(call: CallHistory, hasPrompt: boolean): Exclusion | null {
  return tokenReasons.find(([, fits]) => fits(call, hasPrompt))?.[0] ?? null;
}

/** The policy when the call was let through to the engine that answered it; it may have waited for that since it was begun. */
export function policyAtStart({ begun, tries }: CallHistory): Policy | null {
  const policy = tries.at(-1)?.policy;
  return policy === undefined ? begun.policy : policy;
}

/** The weights changed during the generation, at an unknown token. */
function changedPolicy(call: CallHistory): boolean {
  const [start, end] = [policyAtStart(call), call.finished?.policy ?? null];
  const isOther = start !== null && end !== null && !samePolicy(start, end);
  return (isOther || call.finished?.policy_changed === true) && weightSpansOf(call) === null;
}

/**
 * The weights of each token, as the engine reports them. One name for all tokens is no evidence: engines without spans
 * report the name at the end of the call.
 */
export function weightSpansOf({ finished }: CallHistory): WeightSpan[] | null {
  const spans = finished?.weights ?? [];
  return spans.length > 1 ? spans : null;
}

/** The version that sampled the call's token at this position; null where it is unknown. */
export function policyVersionAt(call: CallHistory, position: number): string | null {
  const spans = weightSpansOf(call);
  if (spans) return spans.find(({ start, end }) => start <= position && (end === null || position < end))?.version ?? null;
  return changedPolicy(call) ? null : (call.finished?.policy?.version ?? null);
}

/** Under a grammar a logprob of exactly 0 means that no other token was allowed; null where there was no grammar. */
export function forcedTokens({ finished }: CallHistory): boolean[] | null {
  if (!finished?.logprob_semantics.grammar || !finished.logprobs) return null;
  return finished.logprobs.map((logprob) => logprob === 0);
}
