/** What holds for every grader: `alidade plugin check` and the contract tests run it. `alidade check --grader` grades with it. */
import assert from "node:assert/strict";
import type { ContractCheck } from "../base/host/plug-ins.ts";
import { Verdict } from "../base/schema/rollout.ts";
import { type GraderSpec, Task } from "../base/schema/task.ts";
import { grade } from "./grade.ts";
import type { GradeContext, Grader } from "./grader.ts";

/** `spec`: what a task says to it; null: its kind alone. */
export type GraderContext = { spec: GraderSpec | null };

export const graderContract: readonly ContractCheck<Grader, GraderContext>[] = [
  {
    says: "its verdict has the form of one, also where no sandbox comes",
    async check(grader, context) {
      Verdict.parse(await grade(contextOf(grader, context, AbortSignal.timeout(60_000))));
    },
  },
  {
    says: "a grading that is cancelled has no reward",
    async check(grader, context) {
      const verdict = await grade(contextOf(grader, context, AbortSignal.abort(new Error("enough"))));
      assert.deepEqual([Verdict.parse(verdict).reward, verdict.status], [null, "cancelled"]);
    },
  },
];

/** No sandbox comes to put it into. */
const noWork = { file: "", sha256: "", bytes: 0, changes: [] };

function contextOf(grader: Grader, { spec }: GraderContext, signal: AbortSignal): GradeContext {
  const task = Task.parse({ task_id: "contract", instruction: "i", grader: { ...spec, kind: grader.name } });
  return { task, work: noWork, signal, graders: [grader], fresh: () => Promise.reject(new Error("no room")) };
}
