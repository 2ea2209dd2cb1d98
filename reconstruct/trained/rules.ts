/**
 * The rules that keep sampled tokens out of training, each under its reason (`base/schema/reasons/untrained.ts`), in the order
 * in which they are asked: the call, its tokens, the trainer's options, the rollout. The first one that fits is the
 * answer. What is true of the call comes before what was decided about the rollout, so that lifting a mask shows what
 * remains.
 */
import { isBent } from "../../base/schema/message.ts";
import type { RecordedReason, trainerReasons } from "../../base/schema/reasons/untrained.ts";
import { isNeverTrained, type RequestClass } from "../../base/schema/session-spec.ts";
import type { CallRecord, Trajectory } from "../../base/schema/trajectory.ts";
import { findMisalignment } from "../../base/tokens/alignment.ts";
import type { CallHistory } from "../log/call-history.ts";
import { isUnattributed } from "../log/policy-of.ts";

export type Rule<Reason, Facts extends unknown[]> = readonly [Reason, (...facts: Facts) => boolean];

export type JudgedCall = Pick<CallRecord, "damage" | "outcome" | "replayed_from" | "other_policy" | "request_class">;

/** What the session says of training. */
export type TrainedSession = Pick<Trajectory, "purpose" | "sandboxed" | "train_classes">;

/**
 * `purpose: live` is trained unless the caller says otherwise (`in_loss: false`): a session is recorded to be trained
 * on. `purpose: eval` never is: a model must not be trained on what it is measured by.
 */
export const callRules: Rule<RecordedReason, [JudgedCall, TrainedSession]>[] = [
  ["damaged", ({ damage }) => damage !== null],
  ["failed", ({ outcome }) => outcome === "failed"],
  // A harness that used a part of the turn acted on something that the policy did not choose. In a sandbox the policy's own
  // commands can leave an answer, or send a part of it, so a turn that was sampled whole is its action.
  ["undelivered", ({ outcome }, { sandboxed }) => !sandboxed && (outcome === "undelivered" || outcome === "partial")],
  ["replayed", ({ replayed_from }) => replayed_from !== null],
  ["other_policy", ({ other_policy }) => other_policy],
  ["auxiliary", ({ request_class }, { train_classes }) => !train_classes.includes(request_class)],
  ["not_for_training", (_, { purpose }) => isNeverTrained(purpose)],
];

/**
 * Read from the log; a stored trajectory has the answer on its nodes. `hasPrompt`: the ids of its prompt are known.
 * `position`: of the token in the sample.
 */
export const tokenRules: Rule<RecordedReason, [call: CallHistory, hasPrompt: boolean, position: number]>[] = [
  ["no_token_ids", ({ finished }, hasPrompt) => !finished?.sampled_ids || !hasPrompt],
  // The recorder compares with the engine's own count as well, which is not in the ids.
  [
    "misaligned",
    ({ finished }) =>
      finished?.missing?.startsWith("misaligned") === true ||
      findMisalignment(finished?.sampled_ids ?? [], finished?.logprobs ?? null) !== null,
  ],
  ["planted_placeholder", ({ finished }) => finished?.missing?.startsWith("planted_placeholder") === true],
  // One missing logprob excludes the whole call: a row with holes has no importance ratio.
  ["no_logprob", ({ finished }) => !finished?.logprobs || finished.logprobs.includes(null)],
  ["unattributed_policy", (call, _, position) => isUnattributed(call, position)],
];

/** What a trainer can say of itself. */
export type Trainer = {
  /**
   * By what it divides its logits; null: not stated, which means 1 for calls whose temperature is recorded. It stands
   * for the temperature of calls that have none.
   */
  temperature: number | null;
  /** It reads the temperature of each token, so that another one than its own is no reason. */
  readsTemperatures: boolean;
  /** Train tokens that were sampled under a grammar: their logprobs hold under its mask only. */
  allowGrammar: boolean;
  /** Kinds of call that are not trained here though the session trains them. */
  leaveOut: readonly RequestClass[];
  /** Its format has no mask within a turn. */
  wholeTurns: boolean;
  /** The trainer's bound on staleness: tokens of an earlier policy step, or of an unknown one, are not trained. null: no bound. */
  oldestStep: number | null;
  /** It renormalises over the tokens that the sampling kept. */
  readsSupport: boolean;
  /** Its rows say which picture stands where. */
  readsImages: boolean;
  /** sft imitates tokens and needs no logprobs. */
  objective: "rl" | "sft";
};

/** A call as a trainer asks about it. */
export type SampledCall = Pick<CallRecord, "request_class" | "sampling" | "logprob_semantics" | "media" | "support"> & {
  seesImage: boolean;
  hasForced: boolean;
};

const penalties = ["presence_penalty", "frequency_penalty"] as const;

const temperatureOf = ({ sampling }: SampledCall, { temperature }: Trainer): number | null => sampling.temperature ?? temperature;
const divisorOf = (call: SampledCall, trainer: Trainer): number =>
  (trainer.readsTemperatures ? temperatureOf(call, trainer) : trainer.temperature) ?? 1;

/** Whatever the objective. */
const anyTrainer: Rule<keyof typeof trainerReasons, [SampledCall, Trainer]>[] = [
  ["left_out_class", ({ request_class }, { leaveOut }) => leaveOut.includes(request_class)],
  // The ids of an image are place holders: a row must say which picture stands where.
  ["images", ({ seesImage, media }, { readsImages }) => seesImage && (media === undefined || !readsImages)],
];

/** A loss on logprobs needs those of the trainer's own distribution. */
const rlTrainer: typeof anyTrainer = [
  ["grammar", ({ logprob_semantics }, { allowGrammar }) => logprob_semantics.grammar && !allowGrammar],
  // A server's own default is as often its model's generation_config.json as it is 1.
  ["temperature_unknown", (call, trainer) => temperatureOf(call, trainer) === null],
  ["other_temperature", (call, trainer) => temperatureOf(call, trainer) !== divisorOf(call, trainer)],
  // log softmax(logits), where the trainer computes log softmax(logits / temperature).
  ["raw_logprobs", (call, trainer) => call.logprob_semantics.kind === "raw" && divisorOf(call, trainer) !== 1],
  ["logprob_kind_unknown", (call, trainer) => call.logprob_semantics.kind === null && divisorOf(call, trainer) !== 1],
  [
    "truncated_sampling",
    ({ sampling, support }, { readsSupport }) =>
      ((sampling.top_p ?? 1) < 1 || (sampling.top_k ?? 0) > 0 || (sampling.min_p ?? 0) > 0) && !(readsSupport && support === "recorded"),
  ],
  [
    "penalised_sampling",
    ({ sampling }) => penalties.some((name) => (sampling[name] ?? 0) !== 0) || (sampling.repetition_penalty ?? 1) !== 1 || isBent(sampling),
  ],
  ["partly_forced", ({ hasForced }, { wholeTurns }) => wholeTurns && hasForced],
];

export const trainerRules = { rl: [...anyTrainer, ...rlTrainer], sft: anyTrainer };

/** The first reason that fits; null where none does. */
export function firstReason<Reason, Facts extends unknown[]>(rules: readonly Rule<Reason, Facts>[], ...facts: Facts): Reason | null {
  return rules.find(([, fits]) => fits(...facts))?.[0] ?? null;
}
