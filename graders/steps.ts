/**
 * Grades a task of several steps: the work after each step by the verifier of that step, as Harbor does. A step below its
 * `min_reward` is the last one. A step that the agent never came to, because it took its sandbox down, earns the lowest reward;
 * one that nothing was measured of leaves the whole without a reward.
 */
import { z } from "zod";
import { asAlidadeError } from "../base/errors.ts";
import type { Verdict } from "../base/schema/rollout.ts";
import type { Task } from "../base/schema/task.ts";
import type { Grader } from "./grader.ts";
import { chosenReward } from "./harbor/reward-rule.ts";
import { HarborSpec } from "./harbor.ts";
import { weakestIsolation, weakestTier } from "./weakest-tier.ts";

const GradedStep = z.strictObject({
  name: z.string().min(1),
  grader: HarborSpec,
  grade_seconds: z.number().positive().describe("seconds that its tests may run"),
  min_reward: z
    .record(z.string(), z.number())
    .nullable()
    .default(null)
    .describe("least value by the reward's name; no step follows one that is below, or lacks the name"),
});

const StepsSpec = z.strictObject({
  kind: z.literal("steps"),
  combine: z.enum(["mean", "final"]).describe("each reward's mean over the graded steps, where a missing one counts 0; or the last one's"),
  steps: z.array(GradedStep).min(1).max(100),
});
type StepsSpec = z.infer<typeof StepsSpec>;

export const steps: Grader<StepsSpec> = {
  name: "steps",
  title: "Steps in one sandbox, each with its own tests by Harbor's verifier",
  version: "1",
  spec: StepsSpec,
  parts: {
    of: (spec) => spec.steps.map(({ grader }) => grader),
    with: (spec, own) => ({
      ...spec,
      steps: spec.steps.map((step, index) => ({ ...step, grader: (own[index] ?? step.grader) as HarborSpec })),
    }),
  },
  tier: (spec, _task, tierOf) => weakestTier(spec.steps.map(({ grader }) => tierOf(grader))),

  async grade(spec, { step: gradeStep, signal }) {
    const verdicts: Verdict[] = [];
    while (!isLastStep(spec, verdicts)) {
      signal.throwIfAborted();
      if (gradeStep === undefined) throw new Error("steps are graded by grade()");
      verdicts.push(await gradeStep(verdicts.length));
    }
    return stepsVerdict(spec, verdicts);
  },
};

/** The task of one step: graded by its tests within its time. */
export function taskOfStep(task: Task, index: number): Task {
  const { steps: own, ...rest } = task;
  const step = own?.[index];
  const graded = StepsSpec.parse(task.grader).steps[index];
  if (step === undefined || graded === undefined) throw new Error(`the task ${task.task_id} has no step ${index}`);
  const { instruction, gold_script, agent_seconds } = step;
  const limits = { ...task.limits, agent_seconds, grade_seconds: Math.min(task.limits.grade_seconds, graded.grade_seconds) };
  return { ...rest, instruction, limits, gold_script, grader: graded.grader };
}

/** `verdicts`: of the steps so far, in order. Does no step follow them? */
export function isLastStep({ steps: all }: Pick<StepsSpec, "steps">, verdicts: readonly Verdict[]): boolean {
  const last = verdicts.at(-1);
  if (last === undefined) return false;
  const { min_reward } = all[verdicts.length - 1] ?? {};
  const values = valuesOf(last);
  const isBelow = Object.entries(min_reward ?? {}).some(([name, least]) => !((values.get(name) ?? Number.NEGATIVE_INFINITY) >= least));
  return verdicts.length === all.length || last.reward === null || isBelow;
}

export function stepsOfGrader(task: Task): StepsSpec {
  return StepsSpec.parse(task.grader);
}

/** What Harbor's verifier read; a work that could not be graded has its reward alone. */
function valuesOf({ components, reward, status }: Verdict): Map<string, number> {
  if (status !== "graded") return new Map(reward === null ? [] : [["reward", reward]]);
  return new Map(Object.entries(components).flatMap(([name, { value }]) => (value === null ? [] : [[name, value]])));
}

/** `verdicts`: of the steps that were graded, in order; at least one. */
export function stepsVerdict(spec: StepsSpec, verdicts: readonly Verdict[]): Verdict {
  const named = verdicts.map((verdict, index) => ({ name: spec.steps[index]?.name ?? "", verdict }));
  const missing = named.find(({ verdict }) => verdict.reward === null);
  const counted = spec.combine === "final" ? verdicts.slice(-1) : verdicts;
  const values = missing ? new Map<string, number>() : meansOf(counted);
  const ofSteps = named.map(({ name, verdict }) => [`step/${name}`, { value: verdict.reward, weight: 0 }] as const);
  return {
    ...(missing ? ungraded(missing) : rewardAndStatus(spec, counted, values)),
    components: Object.fromEntries([...[...values].map(([name, value]) => [name, { value, weight: 0 }] as const), ...ofSteps]),
    formula: formulaOf(
      spec.combine,
      ofSteps.map(([name]) => name),
    ),
    tier: weakestTier(verdicts.map(({ tier }) => tier)) ?? "T0",
    isolation: weakestIsolation(verdicts),
    grader: "steps",
    evidence: {
      steps: Object.fromEntries(named.map(({ name, verdict }) => [name, verdict])),
      not_begun: spec.steps.length - verdicts.length,
    },
    duration_ms: verdicts.reduce((sum, { duration_ms }) => sum + duration_ms, 0),
  };
}

type NamedVerdict = { name: string; verdict: Verdict };

function ungraded({ name, verdict: { status, error } }: NamedVerdict): Pick<Verdict, "reward" | "status" | "error"> {
  const message = `step ${name}: ${error?.message ?? ""}`;
  return { reward: null, status, error: { code: error?.code ?? status, message, status: null } };
}

/** By a rule each step has its reward already. Without one it is Harbor's: a name's mean. */
function rewardAndStatus(
  { steps: all }: StepsSpec,
  counted: readonly Verdict[],
  values: Map<string, number>,
): Pick<Verdict, "reward" | "status" | "error"> {
  try {
    const hasRule = all.some(({ grader }) => grader.reward !== null);
    const sum = counted.reduce((total, { reward }) => total + (reward ?? 0), 0);
    return { reward: hasRule ? sum / counted.length : chosenReward(values, null).reward, status: "graded", error: null };
  } catch (error) {
    const { code, message } = asAlidadeError(error, "grader_error");
    return { reward: null, status: "grader_error", error: { code, message, status: null } };
  }
}

/** Each name's mean; a step without it counts 0. */
function meansOf(verdicts: readonly Verdict[]): Map<string, number> {
  const all = verdicts.map(valuesOf);
  const names = new Set(all.flatMap((values) => [...values.keys()]));
  return new Map([...names].map((name) => [name, all.reduce((sum, values) => sum + (values.get(name) ?? 0), 0) / all.length]));
}

function formulaOf(combine: StepsSpec["combine"], names: readonly string[]): string {
  return combine === "final" ? (names.at(-1) ?? "") : `mean(${names.join(", ")})`;
}
