/**
 * Reads which weights sampled which tokens of an answer. vLLM tells it in the last chunk of a choice: `generate` of 0.32 always, chat and
 * completions of 0.33 if `return_weight_versions` asks for it.
 */
import { z } from "zod";
import type { WeightSpan } from "../../base/schema/session-log.ts";

const Natural = z.number().int().nonnegative();
const WeightVersions = z.array(z.looseObject({ version: z.string(), start: Natural, end: Natural.nullish() })).min(1);

/** null: nothing is told, or in another shape. */
export function readWeightVersions(told: unknown): WeightSpan[] | null {
  const read = WeightVersions.safeParse(told);
  return read.success ? read.data.map(({ version, start, end }) => ({ version, start, end: end ?? null })) : null;
}
