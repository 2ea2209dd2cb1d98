import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sampling } from "../../../base/schema/message.ts";
import { firstReason, type SampledCall, trainerRules } from "../../../reconstruct/trained/rules.ts";
import { defaultTrainer } from "../../../reconstruct/trained/why-untrained.ts";

const call = (sampling: Sampling, kind: "raw" | "processed" | null = "raw"): SampledCall => ({
  request_class: "main",
  sampling,
  logprob_semantics: { kind, grammar: false },
  seesImage: false,
  hasForced: false,
});

const neutral = { top_p: 1, top_k: -1, min_p: 0, presence_penalty: 0, frequency_penalty: 0, repetition_penalty: 1 };

const cases: [string, SampledCall, number | null, string | null][] = [
  ["as training calls are sampled", call({ temperature: 1, ...neutral }), null, null],
  ["greedy", call({ temperature: 0 }), null, "other_temperature"],
  ["no temperature is recorded", call({}), null, "temperature_unknown"],
  ["none is recorded, and one is stated", call({}), 1, null],
  ["the trainer's own, processed", call({ temperature: 0.7 }, "processed"), 0.7, null],
  ["the trainer's own, but logprobs of the bare logits", call({ temperature: 0.7 }), 0.7, "raw_logprobs"],
  ["the trainer's own, and what the logprobs are is unknown", call({ temperature: 0.7 }, null), 0.7, "logprob_kind_unknown"],
  ["as training calls are sampled, and what the logprobs are is unknown", call({ temperature: 1, ...neutral }, null), null, null],
  ["another than the trainer's", call({ temperature: 1 }, "processed"), 0.7, "other_temperature"],
  ["a nucleus", call({ temperature: 1, top_p: 0.9 }, "processed"), null, "truncated_sampling"],
  ["the k likeliest", call({ temperature: 1, top_k: 20 }), null, "truncated_sampling"],
  ["no unlikely ones", call({ temperature: 1, min_p: 0.1 }), null, "truncated_sampling"],
  ["a penalty", call({ temperature: 1, repetition_penalty: 1.05 }), null, "penalised_sampling"],
  ["words that are forbidden", call({ temperature: 1, bad_words: ["x"] }), null, "penalised_sampling"],
  ["an end that is put off", call({ temperature: 1, min_tokens: 5 }), null, "penalised_sampling"],
  ["no thought at all", call({ temperature: 1, thinking_token_budget: 0 }), null, "penalised_sampling"],
  ["as long a thought as it likes", call({ temperature: 1, thinking_token_budget: -1 }), null, null],
  ["nothing forbidden, nothing put off", call({ temperature: 1, bad_words: [], min_tokens: 0, logit_bias: {} }), null, null],
  ["a bias", call({ temperature: 1, logit_bias: { "5": -100 } }), null, "penalised_sampling"],
];

for (const [title, one, temperature, want] of cases)
  test(`${title}: ${want ?? "comparable"}`, () =>
    assert.equal(firstReason(trainerRules.rl, one, { ...defaultTrainer, temperature }), want));
