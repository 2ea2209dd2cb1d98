/** A grader turns the work that was taken out of an agent's sandbox into a verdict. */

import type { TreeFile } from "../files/file-tree.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Verdict } from "../schema/rollout.ts";
import type { GraderSpec, Task } from "../schema/task.ts";

export type GradeContext = {
  task: Task;
  /** The workdir as the agent left it, read from outside after everything inside was ended. */
  work: TreeFile[];
  /** The workdir as it was delivered to the agent. */
  base: TreeFile[];
  /** A fresh sandbox of the task's environment, with what its image has in the workdir; the grader releases it. */
  fresh(): Promise<Sandbox>;
  signal: AbortSignal;
};

export interface Grader<Spec extends GraderSpec = GraderSpec> {
  readonly kind: Spec["kind"];
  readonly title: string;
  /** Never throws for what the work did; throws AlidadeError for what the infrastructure did. */
  grade(spec: Spec, context: GradeContext): Promise<Verdict>;
}
