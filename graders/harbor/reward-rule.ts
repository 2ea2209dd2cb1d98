/** Makes one reward of a verifier's numbers. Harbor leaves that to a metric of the job. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";

const name = z.string().min(1).max(200);

export const RewardRule = z.union(
  [
    z.enum(["mean", "min"]),
    z.strictObject({ key: name }),
    z.strictObject({ weights: z.record(name, z.number().positive()).refine((weights) => Object.keys(weights).length > 0, "names none") }),
  ],
  { error: 'give "mean", "min", { key = "name" } or { weights = { name = 2, other = 1 } }' },
);
export type RewardRule = z.infer<typeof RewardRule>;

/** `formula`: null if one of the numbers is the reward unchanged. */
export type ChosenReward = { reward: number; formula: string | null };

/**
 * Returns the reward. A rule with a key or weights always decides. Otherwise a number named `reward` is the reward, and so is
 * a number that stands alone. `mean` and `min` apply to several numbers of other names. Throws `grader_error` if nothing decides.
 */
export function chosenReward(values: ReadonlyMap<string, number>, rule: RewardRule | null): ChosenReward {
  if (typeof rule === "object" && rule !== null) return "key" in rule ? keyed(values, rule.key) : weighted(values, rule.weights);
  const named = values.get("reward");
  if (named !== undefined) return { reward: named, formula: null };
  const [first, ...others] = values.values();
  if (first !== undefined && others.length === 0) return { reward: first, formula: null };
  if (rule === null || first === undefined) throw missing("reward", values);
  const names = [...values.keys()].join(", ");
  if (rule === "min") return { reward: Math.min(first, ...others), formula: `min(${names})` };
  return { reward: others.reduce((sum, value) => sum + value, first) / values.size, formula: `mean(${names})` };
}

function keyed(values: ReadonlyMap<string, number>, key: string): ChosenReward {
  const reward = values.get(key);
  if (reward === undefined) throw missing(key, values);
  return { reward, formula: null };
}

function weighted(values: ReadonlyMap<string, number>, weights: Record<string, number>): ChosenReward {
  const parts = Object.entries(weights).map(([key, weight]) => ({ key, weight, value: keyed(values, key).reward }));
  const all = parts.reduce((sum, { weight }) => sum + weight, 0);
  const reward = parts.reduce((sum, { weight, value }) => sum + weight * value, 0) / all;
  return { reward, formula: `(${parts.map(({ key, weight }) => `${weight} × ${key}`).join(" + ")}) / ${all}` };
}

/** Returns a number's weight in the reward, for its component. */
export function weightOf(key: string, rule: RewardRule | null): number {
  if (typeof rule !== "object" || rule === null || !("weights" in rule)) return 0;
  return Object.hasOwn(rule.weights, key) ? (rule.weights[key] ?? 0) : 0;
}

function missing(key: string, values: ReadonlyMap<string, number>): AlidadeError {
  const names = [...values.keys()].slice(0, 10).join(", ") || "nothing";
  const cure = `write the one that counts as ${JSON.stringify(key)}, or choose by [metadata.alidade] reward or --harbor-reward`;
  return new AlidadeError("grader_error", `/logs/verifier/reward.json has no ${JSON.stringify(key)} but ${names}: ${cure}`);
}

/** Reads the rule of a command line: `mean`, `min`, a name, or names with weights (`quality=2,style=1`). */
export function parseRewardRule(text: string): RewardRule {
  if (text === "mean" || text === "min") return text;
  if (!text.includes("=")) return RewardRule.parse({ key: text });
  const pairs = text.split(",").map((pair) => [pair.slice(0, pair.lastIndexOf("=")), Number(pair.slice(pair.lastIndexOf("=") + 1))]);
  return RewardRule.parse({ weights: Object.fromEntries(pairs) });
}
