/**
 * Why sampled tokens are not trained: every reason that a record, a report or a row may give. The rules that decide stand
 * in `reconstruct/trained/rules.ts`; docs/reasons.md is generated from these tables.
 */
import type { Meaning } from "./meaning.ts";

const asLogprobs = "`alidade doctor` says what the engine gives; use one that returns token ids with logprobs";
const neutral = "record with `--purpose train`, which samples neutrally";

/** What the record alone decides, whatever the trainer. */
export const recordedReasons = {
  damaged: {
    what: "The session's log holds these calls no more.",
    cure: "`alidade show` names the lines; the rest of the session is as good as before",
  },
  failed: { what: "The call ended with an error.", cure: "`alidade show` prints the error of each call" },
  undelivered: {
    what: "The harness never got the turn, or used only a part of it, so it was not the policy's action.",
    cure: "raise the harness's time limit, or find out why the engine is slow",
  },
  replayed: { what: "The answer is the sample of another rollout's call, which trains it.", cure: null },
  other_policy: {
    what: "Another model than the session's own sampled it.",
    cure: "`model` and `engines[].purpose` of the run file say which one is trained; mark judges and teachers with `purpose: eval`",
  },
  auxiliary: {
    what: "The call is about the session (a title, a quota check) and not about the task.",
    cure: "`train_classes` says which kinds of call are trained",
  },
  not_for_training: {
    what: "The session's purpose is eval or judge: it is never trained.",
    cure: "record with `--purpose train` or `live`",
  },
  no_token_ids: { what: "The engine gave no token ids of the prompt or of the sample.", cure: asLogprobs },
  misaligned: { what: "Token ids, logprobs and counts of the engine disagree.", cure: asLogprobs },
  planted_placeholder: {
    what: "The pad token of pictures stands where no picture is: text spelled it, or the model sampled it, and it takes a picture's place.",
    cure: "`alidade show` names the token; the text came out of the task, the harness or the model",
  },
  no_logprob: { what: "A sampled token has no logprob, so its call has no importance ratio.", cure: asLogprobs },
  unattributed_policy: {
    what: "The weights changed while the call was sampled, and it is not known on which side of the change the token is.",
    cure: "pause with `drain` or `abort` before a weight update",
  },
  forced: { what: "A grammar left no other token, so there was nothing to choose.", cure: null },
  masked_rollout: {
    what: "The whole rollout is out of the loss; its mask says why.",
    cure: "`alidade show` names the mask; `--cut-off CAUSE=train` takes rollouts that were cut off, `--unmeasured zero` those that were not measured",
  },
} as const satisfies Record<string, Meaning>;

/** What a trainer's options add; `export`, `fidelity`, `show` and `record` presume the defaults where none are given. */
export const trainerReasons = {
  left_out_class: { what: "The kind of call was left out with `--leave-out`.", cure: null },
  grammar: {
    what: "It was sampled under a grammar, so its logprobs hold under the grammar's mask only.",
    cure: "if your trainer applies the same mask, add `--allow-grammar`",
  },
  images: {
    what: "The call's context holds an image, and the engine did not tell where its tokens stand.",
    cure: "`alidade doctor` says what the engine tells of pictures (vLLM with `--enable-scale-out` does)",
  },
  temperature_unknown: {
    what: "No call stated a temperature, so the server's sampling temperature is unknown.",
    cure: "if your server samples at 1, add `--temperature 1`; or record with `--purpose train`",
  },
  other_temperature: {
    what: "It was sampled at another temperature than the trainer's.",
    cure: "`--temperature` states the trainer's (default 1)",
  },
  raw_logprobs: {
    what: "Its logprobs are those of the bare logits, and the trainer divides the logits by a temperature that is not 1.",
    cure: "start the server with processed logprobs (vLLM: `--logprobs-mode processed_logprobs`), or sample and train at 1",
  },
  logprob_kind_unknown: {
    what: "The engine does not say whether its logprobs are raw or processed, and the temperature is not 1.",
    cure: "sample and train at a temperature of 1, where both are the same",
  },
  truncated_sampling: {
    what: "It was sampled with `top_p`, `top_k` or `min_p`, from a cut distribution.",
    cure: `${neutral}; or train it over the tokens that were kept, if they are on record (\`--kept-sets train\`)`,
  },
  penalised_sampling: { what: "It was sampled with penalties, biases or forbidden words.", cure: neutral },
  stale_policy: {
    what: "A policy older than the trainer's bound sampled it.",
    cure: "raise `max_version_lag` of the set (`--oldest-step` of `export`), or let fewer groups wait: `alidade status` shows how far each set is ahead",
  },
  partly_forced: {
    what: "A grammar forced some tokens of the call, and the format has no mask within a turn.",
    cure: "choose a format with masks, such as `flat` or `nemo-rl`",
  },
} as const satisfies Record<string, Meaning>;

/** What making rows adds. */
export const rowReasons = {
  over_length: { what: "It lies beyond the longest row.", cure: "raise `--max-tokens`" },
  not_selected: { what: "The selection takes no path through it.", cure: "choose another `--select`" },
  other_row: { what: "Another row trains it; here it is context.", cure: null },
} as const satisfies Record<string, Meaning>;

/** What a single format adds. */
export const formatReasons = {
  other_row_of_rollout: {
    what: "The format takes one row a rollout, and another one has more trained tokens.",
    cure: "choose a format with several rows a rollout",
  },
  partly_trained: {
    what: "Some tokens of the turn are not trained, and the format has no mask within a turn.",
    cure: "choose a format with masks",
  },
  zero_advantage: { what: "The row's advantage is 0, so it would teach nothing.", cure: null },
  no_policy_step: {
    what: "The policy step of the call is unknown, and the format, or a bound on staleness, needs it.",
    cure: "name policies with a step (`policy` in the run file, or with each weight update)",
  },
  no_output: { what: "The call has no message that it said.", cure: null },
} as const satisfies Record<string, Meaning>;

export const untrainedReasons = { ...recordedReasons, ...trainerReasons, ...rowReasons, ...formatReasons };

export type RecordedReason = keyof typeof recordedReasons;
export type UntrainedReason = keyof typeof untrainedReasons;
