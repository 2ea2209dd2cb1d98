/**
 * Grades a task of several steps: what each step left by the grader of that step, as Harbor does. A step below its
 * `min_reward` is the last one. A step that the agent never came to, because it took its sandbox down, earns the lowest reward;
 * one that nothing was measured of leaves the whole without a reward.
 */
import { z } from "zod";
import { asAlidadeError } from "../base/errors.ts";
import type { Verdict } from "../base/schema/rollout.ts";
import type { GraderSpec, Task } from "../base/schema/task.ts";
import { CompositeSpec } from "./composite.ts";
import type { Grader, Misfit } from "./grader.ts";
import { chosenReward } from "./harbor/reward-rule.ts";
import { HarborSpec } from "./harbor.ts";
import { StateSpec } from "./state.ts";
import { weakestIsolation, weakestTier } from "./weakest-tier.ts";

/** These read what a step left. Others read the conversation, which goes on. */
const StepGrader = z.discriminatedUnion("kind", [HarborSpec, StateSpec, CompositeSpec]);
const kinds: readonly string[] = StepGrader.options.map(({ shape }) => shape.kind.value);

const GradedStep = z.strictObject({
  name: z.string().min(1),
  grader: StepGrader,
  grade_seconds: z.number().positive().describe("seconds that its tests may run"),
  min_reward: z
    .record(z.string(), z.number())
    .nullable()
    .default(null)
    .describe("least value by the reward's name; no step follows one that is below, or lacks the name"),
});
type GradedStep = z.infer<typeof GradedStep>;

const StepsSpec = z.strictObject({
  kind: z.literal("steps"),
  combine: z.enum(["mean", "final"]).describe("each reward's mean over the graded steps, where a missing one counts 0; or the last one's"),
  steps: z.array(GradedStep).min(1).max(100),
});
type StepsSpec = z.infer<typeof StepsSpec>;

export const steps: Grader<StepsSpec> = {
  name: "steps",
  title: "Steps in one sandbox, each graded by itself before the next one begins",
  version: "1",
  spec: StepsSpec,
  misfits: ({ steps: all }) => all.flatMap((step, index) => misfitsOf(step, `steps.${index}`)),
  parts: {
    field: "steps",
    of: (spec) => spec.steps.map(({ grader }) => grader),
    with: (spec, own) => ({
      ...spec,
      steps: spec.steps.map((step, index) => ({ ...step, grader: (own[index] ?? step.grader) as GradedStep["grader"] })),
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

function misfitsOf({ grader, min_reward }: GradedStep, within: string): Misfit[] {
  const other = Object.keys(min_reward ?? {}).find((name) => name !== "reward");
  const unknown: Misfit = {
    field: `${within}.min_reward.${other}`,
    message: `is of no reward: a grader of kind ${grader.kind} gives \`reward\``,
  };
  return [...(grader.kind !== "harbor" && other !== undefined ? [unknown] : []), ...partMisfits(grader, `${within}.grader`)];
}

/** Parts of a composite read what a step left too. */
function partMisfits(grader: GraderSpec, within: string): Misfit[] {
  const { success, data } = CompositeSpec.safeParse(grader);
  if (!success) return [];
  return data.parts.flatMap(({ grader: part }, index) => {
    const field = `${within}.parts.${index}.grader`;
    if (kinds.includes(part.kind)) return partMisfits(part, field);
    return [{ field: `${field}.kind`, message: `is ${part.kind}: of a step give one of ${kinds.join(", ")}` }];
  });
}

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
  const { min_reward, grader } = all[verdicts.length - 1] ?? {};
  const values = valuesOf(last, grader?.kind);
  const isBelow = Object.entries(min_reward ?? {}).some(([name, least]) => !((values.get(name) ?? Number.NEGATIVE_INFINITY) >= least));
  return verdicts.length === all.length || last.reward === null || isBelow;
}

export function stepsOfGrader(task: Task): StepsSpec {
  return StepsSpec.parse(task.grader);
}

/** What Harbor's verifier read. Another grader, and a work that could not be graded, has its reward alone. */
function valuesOf({ components, reward, status }: Verdict, kind?: string): Map<string, number> {
  if (status !== "graded" || kind !== "harbor") return new Map(reward === null ? [] : [["reward", reward]]);
  return new Map(Object.entries(components).flatMap(([name, { value }]) => (value === null ? [] : [[name, value]])));
}

/** `verdicts`: of the steps that were graded, in order; at least one. */
export function stepsVerdict(spec: StepsSpec, verdicts: readonly Verdict[]): Verdict {
  const named = verdicts.map((verdict, index) => {
    const { name = "", grader } = spec.steps[index] ?? {};
    return { name, verdict, values: valuesOf(verdict, grader?.kind) };
  });
  const missing = named.find(({ verdict }) => verdict.reward === null);
  const counted = spec.combine === "final" ? named.slice(-1) : named;
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

type NamedVerdict = { name: string; verdict: Verdict; values: Map<string, number> };

function ungraded({ name, verdict: { status, error } }: NamedVerdict): Pick<Verdict, "reward" | "status" | "error"> {
  const message = `step ${name}: ${error?.message ?? ""}`;
  return { reward: null, status, error: { code: error?.code ?? status, message, status: null } };
}

/** By a rule, and by another grader than Harbor's, each step has its reward already. Else it is Harbor's: a name's mean. */
function rewardAndStatus(
  { steps: all }: StepsSpec,
  counted: readonly NamedVerdict[],
  values: Map<string, number>,
): Pick<Verdict, "reward" | "status" | "error"> {
  try {
    const haveRewards = all.some(({ grader }) => grader.kind !== "harbor" || grader.reward !== null);
    const sum = counted.reduce((total, { verdict }) => total + (verdict.reward ?? 0), 0);
    return { reward: haveRewards ? sum / counted.length : chosenReward(values, null).reward, status: "graded", error: null };
  } catch (error) {
    const { code, message } = asAlidadeError(error, "grader_error");
    return { reward: null, status: "grader_error", error: { code, message, status: null } };
  }
}

/** Each name's mean; a step without it counts 0. */
function meansOf(counted: readonly NamedVerdict[]): Map<string, number> {
  const all = counted.map(({ values }) => values);
  const names = new Set(all.flatMap((values) => [...values.keys()]));
  return new Map([...names].map((name) => [name, all.reduce((sum, values) => sum + (values.get(name) ?? 0), 0) / all.length]));
}

function formulaOf(combine: StepsSpec["combine"], names: readonly string[]): string {
  return combine === "final" ? (names.at(-1) ?? "") : `mean(${names.join(", ")})`;
}
