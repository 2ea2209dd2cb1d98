/** A grader turns what an agent did, and the work that was taken out of its sandbox, into a verdict. */
import type { TreeFile } from "../files/file-tree.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Verdict } from "../schema/rollout.ts";
import type { GraderSpec, Task } from "../schema/task.ts";
import type { Trajectory } from "../schema/trajectory.ts";

/** Models behind the proxy for a grader, in a session of its own, which is recorded and never trained. */
export type Sampler = {
  /** The proxy without a trailing slash and without `/v1`, for any SDK that it speaks to. */
  readonly url: string;
  readonly key: string;
};

export type GradeContext = {
  task: Task;
  /** The workdir as the agent left it, read from outside after everything inside was ended. */
  work: TreeFile[];
  /** The workdir as it was delivered to the agent. */
  base: TreeFile[];
  /** The agent's trajectory, reconstructed before grading. Absent without an agent, as in `alidade check`. */
  trajectory?: Trajectory;
  /** Absent where the grader does not say `asksModels`, and where there is no proxy. */
  sampler?: Sampler;
  /** A fresh sandbox of the task's environment, with what its image has in the workdir; the grader releases it. */
  fresh(): Promise<Sandbox>;
  signal: AbortSignal;
};

export interface Grader<Spec extends GraderSpec = GraderSpec> {
  readonly kind: Spec["kind"];
  readonly title: string;
  /** It is given a `sampler`. */
  readonly asksModels?: true;
  /** Never throws for what the work did; throws AlidadeError for what the infrastructure did. */
  grade(spec: Spec, context: GradeContext): Promise<Verdict>;
}
