/** What the verdicts on several steps come to: Harbor's own arithmetic. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Verdict } from "../../base/schema/rollout.ts";
import { HarborSpec } from "../../graders/harbor.ts";
import { isLastStep, stepsVerdict } from "../../graders/steps.ts";

const graded = (values: Record<string, number>): Verdict => ({
  reward: values.reward ?? Object.values(values)[0] ?? null,
  components: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value, weight: 0 }])),
  status: "graded",
  tier: "T1",
  isolation: "container",
  grader: "harbor",
  evidence: {},
  error: null,
  duration_ms: 1,
});
const lost: Verdict = { ...graded({}), reward: 0, status: "no_output", tier: "T0" };
const unmeasured: Verdict = {
  ...graded({}),
  reward: null,
  status: "infra_error",
  error: { code: "sandbox_died", message: "it died", status: null },
};

type Spec = Parameters<typeof stepsVerdict>[0];
const specOf = (combine: Spec["combine"], ...least: (Record<string, number> | null)[]): Spec => {
  const grader = HarborSpec.parse({ kind: "harbor", tests: null });
  return {
    kind: "steps",
    combine,
    steps: least.map((min_reward, index) => ({ name: "abc"[index] ?? "", grader, grade_seconds: 1, min_reward })),
  };
};

const rewards = ({ components }: Verdict) =>
  Object.fromEntries(Object.entries(components).flatMap(([name, { value }]) => (name.startsWith("step/") ? [] : [[name, value]])));

test("the mean is over the steps that were graded, and a step without a name counts 0 for it; final is the last one's", () => {
  // As measured of Harbor 0.24: min_reward missed at the second of three.
  const verdicts = [graded({ reward: 1, a: 2 }), graded({ reward: 0.5 })];
  const mean = stepsVerdict(specOf("mean", null, { reward: 0.75 }, null), verdicts);
  assert.deepEqual([mean.reward, rewards(mean), mean.formula], [0.75, { reward: 0.75, a: 1 }, "mean(step/a, step/b)"]);
  assert.deepEqual(mean.components["step/b"], { value: 0.5, weight: 0 });
  assert.equal(mean.evidence.not_begun, 1);
  const final = stepsVerdict(specOf("final", null, { reward: 0.75 }, null), verdicts);
  assert.deepEqual([final.reward, rewards(final), final.formula], [0.5, { reward: 0.5 }, "step/b"]);
});

test("no step follows the last one, one below its least reward, one that lacks a reward's name, or one of which nothing was measured", () => {
  const spec = specOf("mean", { reward: 0.5, quality: 0.5 }, { reward: 1 }, null);
  const ended = (...verdicts: Verdict[]) => isLastStep(spec, verdicts);
  const good = graded({ reward: 1, quality: 1 });
  assert.deepEqual([ended(), ended(good), ended(graded({ reward: 0.5, quality: 0.5 }))], [false, false, false]);
  assert.deepEqual([ended(graded({ reward: 1, quality: 0.4 })), ended(graded({ reward: 1 })), ended(unmeasured)], [true, true, true]);
  assert.deepEqual([ended(good, good), ended(good, lost), ended(good, good, good)], [false, true, true]);
  assert.equal(isLastStep(specOf("mean", null, null), [lost]), false);
});

test("a step that the agent's own doing kept from its tests counts 0, and one that nothing was measured of takes the reward away", () => {
  const spec = specOf("mean", null, null);
  const half = stepsVerdict(spec, [graded({ reward: 1 }), lost]);
  assert.deepEqual([half.reward, half.status, half.tier], [0.5, "graded", "T0"]);
  const none = stepsVerdict(spec, [graded({ reward: 1 }), unmeasured]);
  assert.deepEqual(
    [none.reward, none.status, none.error?.code, none.error?.message],
    [null, "infra_error", "sandbox_died", "step b: it died"],
  );
});

test("where a rule chose each step's reward, the mean is over those, and a lost step counts 0", () => {
  const spec = specOf("mean", null, null);
  for (const step of spec.steps) step.grader = HarborSpec.parse({ kind: "harbor", tests: null, reward: { key: "quality" } });
  const verdict = stepsVerdict(spec, [{ ...graded({ quality: 0.5, style: 1 }), reward: 0.5 }, lost]);
  assert.deepEqual([verdict.reward, verdict.status], [0.25, "graded"]);
});

test("a step of another grader than Harbor's has its reward alone, and the whole is then the mean of the steps' rewards", () => {
  const spec = specOf("mean", null, { reward: 1 }, null);
  const [, second] = spec.steps;
  if (second) second.grader = { kind: "state", checks: [{ file: "a", exists: true }] };
  const held = { ...graded({ "1 a": 1, "2 b": 1 }), reward: 1 };
  const failed = { ...graded({ "1 a": 1, "2 b": 0 }), reward: 0 };
  const scored = { ...graded({ score: 0.5 }), reward: 0.5 };
  assert.deepEqual([isLastStep(spec, [scored, held]), isLastStep(spec, [scored, failed])], [false, true]);
  const verdict = stepsVerdict(spec, [scored, held]);
  assert.deepEqual([verdict.reward, rewards(verdict)], [0.75, { score: 0.25, reward: 0.5 }]);
});
