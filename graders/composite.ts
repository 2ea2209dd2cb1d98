/**
 * Grades by several graders, and says by which formula their rewards become one. A part without a reward leaves the whole
 * without one, with the part's reason; a gate that does not hold makes it 0, and no part after it is graded.
 */
import { z } from "zod";
import type { Verdict } from "../base/schema/rollout.ts";
import { GraderSpec } from "../base/schema/task.ts";
import type { Grader } from "./grader.ts";
import { weakestIsolation, weakestTier } from "./weakest-tier.ts";

const CompositePart = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, "1 to 64 letters, digits, points, hyphens and underscores"),
  grader: GraderSpec,
  gate: z.boolean().default(false).describe("a reward below 1 makes the whole 0"),
  weight: z.number().positive().default(1).describe("in a weighted mean"),
});
type CompositePart = z.infer<typeof CompositePart>;

export const CompositeSpec = z
  .strictObject({
    kind: z.literal("composite"),
    combine: z.enum(["weighted", "product", "min", "all"]).describe("what the rewards of the parts that are no gates become"),
    parts: z.array(CompositePart).min(1).max(20),
  })
  .refine(({ parts }) => new Set(parts.map(({ name }) => name)).size === parts.length, {
    path: ["parts"],
    error: "two parts have one name",
  });
type CompositeSpec = z.infer<typeof CompositeSpec>;

type Graded = { part: CompositePart; verdict: Verdict };

export const composite: Grader<CompositeSpec> = {
  name: "composite",
  title: "Several graders, and a formula",
  version: "1",
  spec: CompositeSpec,
  parts: {
    field: "parts",
    of: ({ parts }) => parts.map(({ grader }) => grader),
    with: (spec, own) => ({ ...spec, parts: spec.parts.map((part, index) => ({ ...part, grader: own[index] ?? part.grader })) }),
  },
  tier: ({ parts }, _task, tierOf) => weakestTier(parts.map(({ grader }) => tierOf(grader))),

  async grade({ combine, parts }, { part: gradePart, signal }) {
    const started = performance.now();
    const graded: Graded[] = [];
    // One after the other, for each may need a sandbox; gates first, for they may spare the rest.
    for (const part of [...parts.filter(({ gate }) => gate), ...parts.filter(({ gate }) => !gate)]) {
      signal.throwIfAborted();
      if (gradePart === undefined) throw new Error("a composite is graded by grade()");
      graded.push({ part, verdict: await gradePart(part.grader) });
      if (isShut(graded)) break;
    }
    const missing = isShut(graded) ? undefined : nullOf(graded);
    const verdicts = graded.map(({ verdict }) => verdict);
    return {
      reward: missing === undefined ? rewardOf(combine, graded) : null,
      components: Object.fromEntries(parts.map((part) => [part.name, componentOf(part, combine, graded)])),
      formula: formulaOf(combine, parts),
      status: missing?.verdict.status ?? "graded",
      tier: weakestTier(verdicts.map(({ tier }) => tier)) ?? "T0",
      isolation: weakestIsolation(verdicts),
      grader: `composite/${combine}`,
      evidence: { parts: Object.fromEntries(graded.map(({ part, verdict }) => [part.name, evidenceOf(verdict)])) },
      error: missing === undefined ? null : errorOf(missing),
      duration_ms: performance.now() - started,
    };
  },
};

/** Does a gate not hold? */
function isShut(graded: readonly Graded[]): boolean {
  return graded.some(({ part, verdict }) => part.gate && verdict.reward !== null && verdict.reward < 1);
}

function nullOf(graded: readonly Graded[]): Graded | undefined {
  return graded.find(({ verdict }) => verdict.reward === null);
}

/** Every part that counts has a reward, or a gate is shut. */
function rewardOf(combine: CompositeSpec["combine"], graded: readonly Graded[]): number {
  if (isShut(graded)) return 0;
  const counted = graded
    .filter(({ part }) => !part.gate)
    .map(({ part, verdict }) => ({ weight: part.weight, reward: verdict.reward ?? 0 }));
  const rewards = counted.map(({ reward }) => reward);
  if (rewards.length === 0) return 1;
  if (combine === "min") return Math.min(...rewards);
  if (combine === "product") return rewards.reduce((product, reward) => product * reward, 1);
  if (combine === "all") return rewards.every((reward) => reward >= 1) ? 1 : 0;
  const weights = counted.reduce((sum, { weight }) => sum + weight, 0);
  return counted.reduce((sum, { weight, reward }) => sum + weight * reward, 0) / weights;
}

function formulaOf(combine: CompositeSpec["combine"], parts: readonly CompositePart[]): string {
  const gates = parts.filter(({ gate }) => gate).map(({ name }) => `[${name} ≥ 1]`);
  const counted = parts.filter(({ gate }) => !gate);
  const names = counted.map(({ name }) => name);
  const sum = counted.reduce((all, { weight }) => all + weight, 0);
  const rest = {
    weighted: `(${counted.map(({ name, weight }) => `${weight} × ${name}`).join(" + ")}) / ${sum}`,
    product: names.join(" × "),
    min: `min(${names.join(", ")})`,
    all: names.map((name) => `[${name} ≥ 1]`).join(" × "),
  }[combine];
  return [...gates, ...(counted.length === 0 ? [] : [rest])].join(" × ");
}

/** `weight` is what the part adds to the reward where the parts are added up, and 0 where they are not. */
function componentOf(
  part: CompositePart,
  combine: CompositeSpec["combine"],
  graded: readonly Graded[],
): { value: number | null; weight: number } {
  const value = graded.find((one) => one.part === part)?.verdict.reward ?? null;
  return { value, weight: combine === "weighted" && !part.gate ? part.weight : 0 };
}

function evidenceOf({ reward, status, tier, isolation, grader, components, formula, evidence, error, duration_ms }: Verdict) {
  return { reward, status, tier, isolation, grader, components, ...(formula !== undefined && { formula }), evidence, error, duration_ms };
}

function errorOf({ part, verdict }: Graded): Verdict["error"] {
  const { code = verdict.status, message = "" } = verdict.error ?? {};
  return { code, message: `part ${part.name}: ${message}`, status: null };
}
