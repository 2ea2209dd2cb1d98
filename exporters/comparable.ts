/**
 * May a trainer that only knows one temperature compare its logprobs with the recorded ones? A format that has no place
 * for a call's sampling parameters presumes that all of them were the trainer's; a call that breaks this is left out.
 */
import type { CallRecord } from "../schema/trajectory.ts";

const penalties = ["presence_penalty", "frequency_penalty"] as const;

const reasons: [string, (call: CallRecord, temperature: number) => boolean][] = [
  ["temperature_unknown", ({ sampling }) => sampling.temperature === undefined],
  ["other_temperature", ({ sampling }, temperature) => sampling.temperature !== temperature],
  // log softmax(logits), where the trainer computes log softmax(logits / temperature).
  ["raw_logprobs", (call, temperature) => call.logprob_semantics.kind === "raw" && temperature !== 1],
  ["truncated_sampling", ({ sampling }) => (sampling.top_p ?? 1) < 1 || (sampling.top_k ?? 0) > 0 || (sampling.min_p ?? 0) > 0],
  [
    "penalised_sampling",
    ({ sampling }) =>
      penalties.some((name) => (sampling[name] ?? 0) !== 0) ||
      (sampling.repetition_penalty ?? 1) !== 1 ||
      Object.keys(sampling.logit_bias ?? {}).length > 0,
  ],
];

/** The first reason why the call's logprobs are not those of a trainer at this temperature; null where they are. */
export function whyIncomparable(call: CallRecord, temperature: number): string | null {
  return reasons.find(([, fits]) => fits(call, temperature))?.[0] ?? null;
}
