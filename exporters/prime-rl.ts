/** prime-rl: one `TrainingSample` a line, its fields by name; all arrays are as long as the row. */
import { z } from "zod";
import { type FlatRow, fullLength, perToken } from "../reconstruct/index.ts";
import type { CallRecord, Trajectory } from "../schema/trajectory.ts";
import { advantage, rowsWithAdvantage } from "./advantages.ts";
import { whyIncomparable } from "./comparable.ts";
import { defineExporter } from "./exporter.ts";

export const primeRl = defineExporter({
  name: "prime-rl",
  title: "prime-rl TrainingSample: token_ids, mask, logprobs, temperatures, advantages",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  saysTemperatures: true,
  docs: {
    alignment: "B",
    rows: "As many rows as a rollout has branches. No dummy rows: advantages are written, not computed from rows, so that a rollout without trained tokens counts in the baseline all the same. Temperatures are written for each token, so none is refused.",
    loader: "alidade_prime_rl.py",
    checked: "its documented fields, not its code",
  },
  options: z.strictObject({
    advantage,
    env_name: z.string().default("alidade").describe("environment under which prime-rl counts the samples"),
  }),
  async *write(source, options, report) {
    for await (const { row, advantage, trajectory } of rowsWithAdvantage(source, options, report, { refuse: whyNotItsOwn })) {
      report.rows++;
      yield JSON.stringify(toSample(row, trajectory, advantage, options.own.env_name));
    }
  },
});

/** The trainer divides each token's logits by the temperature that is written for it. */
function whyNotItsOwn(call: CallRecord): string | null {
  return whyIncomparable(call, call.sampling.temperature ?? null);
}

function toSample(row: FlatRow, trajectory: Trajectory, worth: number, env_name: string): Record<string, unknown> {
  const { mask, logprobs } = fullLength(row);
  const temperatureOf = new Map(trajectory.calls.map((call) => [call.call_id, call.sampling.temperature ?? null]));
  const trained = row.segments.find((segment) => segment.trainable);
  // Of tokens that nobody trains any temperature is as good; prime-rl wants a number.
  const filler = (trained === undefined ? null : temperatureOf.get(trained.call_id)) ?? 1;
  return {
    token_ids: row.token_ids,
    mask: mask.map((each) => each === 1),
    logprobs,
    temperatures: perToken(row, ({ trainable, call_id }) => (trainable ? (temperatureOf.get(call_id) ?? filler) : filler)),
    env_name,
    advantages: mask.map((each) => (each === 1 ? worth : 0)),
  };
}
