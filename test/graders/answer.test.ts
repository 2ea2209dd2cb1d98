import assert from "node:assert/strict";
import { test } from "node:test";
import { Task } from "../../base/schema/task.ts";
import { answer } from "../../graders/answer.ts";
import { grade } from "../../graders/grade.ts";
import { spokenTrajectory } from "../fakes/records/spoken-trajectory.ts";

const noWork = { file: "", sha256: "", bytes: 0, changes: [] };

function verdictOn(text: string | null, spec: object, isolation: "container" | "none" = "container") {
  const task = Task.parse({ task_id: "a", instruction: "i", grader: { kind: "answer", ...spec } });
  const trajectory = spokenTrajectory(text === null ? [] : [{ text }]);
  const fresh = () => Promise.reject(new Error("an answer needs no sandbox"));
  return grade({ task, work: noWork, trajectory, isolation, fresh, signal: AbortSignal.timeout(60_000) });
}

for (const [text, spec, reward] of [
  [" 42\n", { exact: "42" }, 1],
  ["42.", { exact: "42" }, 0],
  ["PARIS", { exact: ["paris", "Paris, France"], ignore_case: true }, 1],
  ["PARIS", { exact: ["paris"] }, 0],
  ["I think.\nThe end: 42\n\n", { exact: "The end: 42", take: "last_line" }, 1],
  ["between 3 and 1,234.50", { number: 1234.5 }, 1],
  ["42 or perhaps 43", { number: 42 }, 0],
  ["about -2e-3", { number: -0.0021, tolerance: 0.001 }, 1],
  ["1e999", { number: 7, tolerance: 1e300 }, 0],
  ["no idea", { number: 0 }, 0],
  ["b, a;\n c", { set: ["a", "b", "c"] }, 1],
  ["a, b, c, d", { set: ["a", "b", "c"] }, 0],
  ["a", { set: ["a", "b"] }, 0],
  ["The answer is yes.", { regex: "\\b(?i:YES)\\b" }, 1],
  ["no", { regex: "yes" }, 0],
  ["", { regex: "yes" }, 0],
  ["So $\\boxed{1}$, no: $\\boxed{\\frac12}$.", { math: "\\frac{1}{2}", take: "boxed" }, 1],
  ["So $\\boxed{\\frac12}$, no: $\\boxed{1}$.", { math: "\\frac{1}{2}", take: "boxed" }, 0],
  ["\\frac{1}{2}", { math: "\\frac{1}{2}", take: "boxed" }, 0],
  ["#### 1,234", { math: "1234", take: "hashes" }, 1],
  ["#### 41\n(and 1234)", { math: "1234", take: "hashes" }, 0],
  ["1234", { math: "1234", take: "hashes" }, 0],
  [Array.from({ length: 10_000 }, (_, number) => number).join(" "), { regex: "\\b3\\b" }, 0],
  ["one, two or 3", { regex: "\\b3\\b", longest: 12 }, 0],
  ["one, two or 3", { regex: "\\b3\\b", longest: 13 }, 1],
] as const)
  test(`the answer ${JSON.stringify(text)?.slice(0, 60)} earns ${reward} for ${JSON.stringify(spec)}`, async () => {
    const verdict = await verdictOn(text, spec);
    assert.deepEqual([verdict.reward, verdict.status, verdict.tier, verdict.grader_version], [reward, "graded", "T3", answer.version]);
  });

test("no answer is a wrong one, and no place without a reward", async () => {
  for (const spec of [{ exact: "x" }, { number: 1, tolerance: 1e9 }, { set: ["a"] }, { regex: "^$" }]) {
    const verdict = await verdictOn(null, spec);
    assert.deepEqual([verdict.reward, verdict.status], [0, "graded"], JSON.stringify(spec));
  }
});

test("an answer that keeps a regular expression busy for ever is a wrong one, within seconds", { timeout: 300_000 }, async () => {
  const verdict = await verdictOn("a".repeat(60), { regex: "^(a|aa)+$(?<=b)" });
  assert.deepEqual([verdict.reward, verdict.status], [0, "graded"]);
  assert.match(JSON.stringify(verdict.evidence.failed), /not decided in time/);
});

test("what an agent said on this very machine is T0", async () => {
  assert.deepEqual([(await verdictOn("1", { number: 1 }, "none")).tier], ["T0"]);
});

test("a spec says one thing, and a regular expression that is one", () => {
  for (const [spec, why] of [
    [{}, /give one of exact, number, set, regex/],
    [{ exact: "a", number: 1 }, /give one of exact, number, set, regex/],
    [{ regex: "(" }, /regular expression of JavaScript/],
    [{ number: 1, tolerance: -1 }, /tolerance/],
  ] as const)
    assert.throws(() => answer.spec?.parse({ kind: "answer", ...spec }), why, JSON.stringify(spec));
});
