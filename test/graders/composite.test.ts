import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import { type GraderSpec, Task } from "../../base/schema/task.ts";
import { grade } from "../../graders/grade.ts";
import type { Grader } from "../../graders/grader.ts";
import { checkTier } from "../../graders/min-tier.ts";
import { asksModels, graders } from "../../graders/registry.ts";
import { docker } from "../../sandboxes/docker.ts";
import { spokenTrajectory } from "../fakes/records/spoken-trajectory.ts";

/** Gives the reward that its spec says; null: the infrastructure failed. */
const fixed: Grader<GraderSpec & { gives: number | null }> = {
  name: "fixed",
  title: "t",
  asksModels: true,
  tier: () => "T2",
  async grade({ gives }) {
    if (gives === null) throw new AlidadeError("judge_abstained", "it cannot tell");
    const verdict = { components: {}, status: "graded", tier: "T2", isolation: "container", grader: "fixed", evidence: {} } as const;
    return { ...verdict, reward: gives, error: null, duration_ms: 0 };
  },
};
const known = [fixed as unknown as Grader, ...graders];

type PartSpec = { gives: number | null; gate?: boolean; weight?: number };

function specOf(combine: string, parts: PartSpec[]): GraderSpec {
  const all = parts.map(({ gives, ...rest }, index) => ({ name: `p${index}`, grader: { kind: "fixed", gives }, ...rest }));
  return { kind: "composite", combine, parts: all };
}

function verdictOn(grader: GraderSpec) {
  const task = Task.parse({ task_id: "a", instruction: "i", grader });
  const work = { file: "", sha256: "", bytes: 0, changes: [] };
  const fresh = () => Promise.reject(new Error("no room"));
  return grade({
    task,
    work,
    trajectory: spokenTrajectory([{ text: "7" }]),
    fresh,
    graders: known,
    isolation: "container",
    signal: AbortSignal.timeout(60_000),
  });
}

for (const [combine, parts, reward, formula] of [
  ["weighted", [{ gives: 1, weight: 3 }, { gives: 0 }], 0.75, "(3 × p0 + 1 × p1) / 4"],
  ["product", [{ gives: 0.5 }, { gives: 0.5 }], 0.25, "p0 × p1"],
  ["min", [{ gives: 0.5 }, { gives: 0.25 }], 0.25, "min(p0, p1)"],
  ["all", [{ gives: 1 }, { gives: 0.9 }], 0, "[p0 ≥ 1] × [p1 ≥ 1]"],
  ["weighted", [{ gives: 1, gate: true }, { gives: 0.5 }], 0.5, "[p0 ≥ 1] × (1 × p1) / 1"],
  ["weighted", [{ gives: 0.9, gate: true }, { gives: 1 }], 0, "[p0 ≥ 1] × (1 × p1) / 1"],
  ["all", [{ gives: 1, gate: true }], 1, "[p0 ≥ 1]"],
] as const)
  test(`${combine} of ${JSON.stringify(parts)} is ${reward}, by the formula that the verdict has`, async () => {
    const verdict = await verdictOn(specOf(combine, [...parts]));
    assert.deepEqual([verdict.reward, verdict.formula, verdict.status, verdict.tier], [reward, formula, "graded", "T2"]);
  });

test("a part without a reward leaves the whole without one, with its reason, and the other parts stay on the record", async () => {
  for (const combine of ["weighted", "product", "min", "all"]) {
    const verdict = await verdictOn(specOf(combine, [{ gives: null }, { gives: 0.5 }]));
    assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [null, "judge_abstained", "judge_abstained"]);
    assert.equal(verdict.error?.message, "part p0: it cannot tell");
    assert.deepEqual([verdict.components.p0?.value, verdict.components.p1?.value], [null, 0.5]);
  }
  const masked = await verdictOn(specOf("all", [{ gives: null, gate: true }, { gives: 1 }]));
  assert.equal(masked.reward, null, "a gate that could not be looked at");
});

test("a shut gate is 0 whatever else there is, and what stands behind it is not asked", async () => {
  const verdict = await verdictOn(specOf("weighted", [{ gives: null }, { gives: 0, gate: true }]));
  assert.deepEqual([verdict.reward, verdict.status], [0, "graded"]);
  assert.deepEqual(Object.keys(verdict.evidence.parts as object), ["p1"]);
});

test("parts are graders of any kind, composites too, and the weakest tier is the whole's", async () => {
  const inner = { kind: "composite", combine: "all", parts: [{ name: "said", grader: { kind: "answer", number: 7 } }] };
  const verdict = await verdictOn({
    kind: "composite",
    combine: "weighted",
    parts: [
      { name: "inner", grader: inner },
      { name: "fixed", grader: { kind: "fixed", gives: 0 } },
    ],
  });
  assert.deepEqual([verdict.reward, verdict.tier, verdict.grader], [0.5, "T2", "composite/weighted"]);
  const task = Task.parse({ task_id: "a", instruction: "i", grader: specOf("all", [{ gives: 1 }]) });
  assert.doesNotThrow(() => checkTier(task, "T2", docker, known));
  assert.throws(() => checkTier(task, "T3", docker, known), { message: /task a is graded below it \(composite: T2\)/ });
  assert.deepEqual([asksModels(task.grader, known), asksModels(inner, known)], [true, false]);
});

test("a part that gives a reward outside of the task's range has none", async () => {
  const verdict = await verdictOn(specOf("min", [{ gives: 1e300 }, { gives: 0.5 }]));
  assert.deepEqual([verdict.reward, verdict.status], [null, "grader_error"]);
  assert.match(verdict.error?.message ?? "", /part p0: the grader gave the reward 1e\+300/);
});
