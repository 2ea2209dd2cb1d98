/** prime-rl: one `TrainingSample` a line, its fields by name; all arrays are as long as the row. */
import { z } from "zod";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { type FlatRow, fullLength, perToken, teacherLogprobs } from "../reconstruct/index.ts";
import { defineExporter, type ExportOptions } from "./exporter.ts";
import { advantageOption, creditOption, rowsWithAdvantage } from "./rows/advantages.ts";
import { mediaOf } from "./rows/media.ts";
import { routingOf } from "./rows/routing.ts";
import { trainedCalls } from "./rows/row-calls.ts";
import { addLeftOut } from "./shapes/left-out.ts";

export const primeRl = defineExporter({
  name: "prime-rl",
  title: "prime-rl TrainingSample, which its loader packs: token_ids, mask, logprobs, temperatures, advantages",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  namesPictures: true,
  saysPictures: true,
  saysTemperatures: true,
  docs: {
    alignment: "B",
    rows: "As many rows as a rollout has branches. No dummy rows: advantages are written, not computed from rows, so a rollout without trained tokens still counts in the baseline. An advantage is reward minus mean, as in prime-rl's GRPO. Each token has its own advantage: if other rollouts were forked after a turn, `credit` gives this turn the mean of their rewards. A row is left out as `zero_advantage` if all its advantages are 0, as by prime-rl's `filter_zero_advantages`. Each token has its temperature, so no temperature is refused. prime-rl has no flag or file for such rows: its orchestrator makes `TrainingSample`s in its own process and sends packed `MicroBatch`es to the trainer. The loader packs them; sending them takes an orchestrator of your own. Online, the seam is a verifiers environment (`verifiers`). The loader turns pictures (`media`) into `mm_kwargs` and `mm_token_type_ids`.",
    teacher: "`ref_logprobs`",
    experts: "`routed_experts`, bytes with their shape and type; a last token without an entry has 0 for each expert",
    loader: "alidade.loaders.prime_rl",
    proof: { how: "by_hand", by: "its source of August 2026 (`prepare_batch`, loss)" },
  },
  options: z.strictObject({
    advantage: advantageOption("dr_grpo"),
    credit: creditOption,
    env_name: z.string().default("alidade").describe("environment under which prime-rl counts the samples"),
  }),
  async *write(source, options, report) {
    for await (const { row, advantages, trajectory } of rowsWithAdvantage(source, options, report, { readsTemperatures: true })) {
      // prime-rl takes their tokens out of the loss and out of what it divides by.
      if (advantages.every((advantage) => advantage === 0)) {
        addLeftOut(report, { zero_advantage: trainedCalls(row) });
        continue;
      }
      report.rows++;
      yield JSON.stringify(toSample(row, trajectory, advantages, options));
    }
  },
});

type Options = Pick<ExportOptions<{ env_name: string }>, "own" | "temperature">;

function toSample(row: FlatRow, trajectory: Trajectory, advantages: number[], { own, temperature }: Options): Record<string, unknown> {
  const { mask, logprobs } = fullLength(row);
  const teacher = teacherLogprobs(row);
  const temperatureOf = new Map(trajectory.calls.map((call) => [call.call_id, call.sampling.temperature ?? temperature]));
  const trained = row.segments.find((segment) => segment.trainable);
  // prime-rl needs a number; for untrained tokens its value does not matter.
  const filler = (trained === undefined ? null : temperatureOf.get(trained.call_id)) ?? 1;
  return {
    token_ids: row.token_ids,
    mask: mask.map((each) => each === 1),
    logprobs,
    ...(teacher && { ref_logprobs: teacher }),
    ...mediaOf(row),
    ...routingOf(row),
    temperatures: perToken(row, ({ trainable, call_id }) => (trainable ? (temperatureOf.get(call_id) ?? filler) : filler)),
    env_name: own.env_name,
    advantages,
  };
}
