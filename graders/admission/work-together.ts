/** The way of grading that is left where tests say nothing apart from the work: the same tests in one process with it. */
import type { GraderSpec } from "../../base/schema/task.ts";
import type { Grader } from "../grader.ts";
import { graderOf, specOfGrader } from "../registry.ts";
import { runsApart, TestsSpec } from "../tests.ts";

/** null: none of its tests runs apart. */
export function withWorkTogether(spec: GraderSpec, known?: readonly Grader[]): GraderSpec | null {
  if (spec.kind === "tests") return runsApart(TestsSpec.parse(spec)) ? { ...spec, work_runs: "together" } : null;
  const { parts } = graderOf(spec, known);
  const own = specOfGrader(spec, known);
  const before = parts?.of(own) ?? [];
  const changed = before.map((part) => withWorkTogether(part, known));
  if (parts === undefined || changed.every((part) => part === null)) return null;
  return parts.with(
    own,
    before.map((part, index) => changed[index] ?? part),
  );
}

/** What a runner prints where a test asks for what cannot cross (graders/runners/). */
const refusal = /([^"\\]{1,300}): (?:where the task is right, )?let (?:it|the task) say work_runs: together/;

/** The first reason that a runner gave in this evidence; null: it gave none. */
export function whyNotApart(evidence: Record<string, unknown>): string | null {
  const said = refusal.exec(JSON.stringify(evidence))?.[1];
  return said?.replace(/^.*\bUnsupported: /s, "").trim() ?? null;
}
