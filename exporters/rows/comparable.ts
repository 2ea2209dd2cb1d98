/**
 * May a trainer that only knows one temperature compare its logprobs with the recorded ones? A format that has no place
 * for a call's sampling parameters presumes that all of them were the trainer's; a call that breaks this is left out.
 */
import { isBent } from "../../schema/message.ts";
import type { CallRecord } from "../../schema/trajectory.ts";

const penalties = ["presence_penalty", "frequency_penalty"] as const;

/** `temperature`: the trainer's, where it was stated. It also stands for calls without a recorded one. */
type Trainer = { temperature: number | null };

const temperatureOf = ({ sampling }: CallRecord, { temperature }: Trainer): number | null => sampling.temperature ?? temperature;

const reasons: [string, (call: CallRecord, trainer: Trainer) => boolean][] = [
  // A server's own default is as often its model's generation_config.json as it is 1.
  ["temperature_unknown", (call, trainer) => temperatureOf(call, trainer) === null],
  ["other_temperature", (call, trainer) => temperatureOf(call, trainer) !== (trainer.temperature ?? 1)],
  // log softmax(logits), where the trainer computes log softmax(logits / temperature).
  ["raw_logprobs", (call, { temperature }) => call.logprob_semantics.kind === "raw" && (temperature ?? 1) !== 1],
  ["logprob_kind_unknown", (call, { temperature }) => call.logprob_semantics.kind === null && (temperature ?? 1) !== 1],
  ["truncated_sampling", ({ sampling }) => (sampling.top_p ?? 1) < 1 || (sampling.top_k ?? 0) > 0 || (sampling.min_p ?? 0) > 0],
  [
    "penalised_sampling",
    ({ sampling }) => penalties.some((name) => (sampling[name] ?? 0) !== 0) || (sampling.repetition_penalty ?? 1) !== 1 || isBent(sampling),
  ],
];

/**
 * The first reason why the call's logprobs are not those of a trainer at this temperature (null: at 1, as training calls
 * are sampled); null where they are.
 */
export function whyIncomparable(call: CallRecord, temperature: number | null): string | null {
  return reasons.find(([, fits]) => fits(call, { temperature }))?.[0] ?? null;
}
