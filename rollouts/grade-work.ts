/** POST: the work against the task's grader, in a fresh sandbox. */
import { type AlidadeError, asAlidadeError } from "../errors.ts";
import { gradeTask } from "../graders/index.ts";
import { toErrorRecord } from "../proxy/index.ts";
import { nodeInside, nodeMount } from "../sandboxes/node-mount.ts";
import type { SandboxFile } from "../sandboxes/sandbox.ts";
import { specOf } from "../sandboxes/task-spec.ts";
import type { Verdict } from "../schema/rollout.ts";
import type { RolloutPlan, RunSetup } from "./run-setup.ts";

/** A verdict always: what the infrastructure did to the grader is one with reward null. */
export async function gradeWork(
  setup: RunSetup,
  plan: RolloutPlan,
  base: SandboxFile[],
  work: SandboxFile[],
  signal: AbortSignal,
): Promise<Verdict> {
  const { task } = plan;
  const started = Date.now();
  try {
    const mounts = { [nodeInside]: await nodeMount() };
    return await gradeTask({ task, base, work, signal, fresh: () => setup.backend.create(specOf(task, setup, { mounts }), signal) });
  } catch (error) {
    signal.throwIfAborted();
    const ours = asAlidadeError(error, "grader_error");
    return infrastructureVerdict(setup, task.grader.kind, ours, Date.now() - started);
  }
}

/** What is known when nothing could be graded. */
export function infrastructureVerdict(setup: RunSetup, grader: string, error: AlidadeError, duration_ms: number): Verdict {
  return {
    reward: null,
    components: {},
    status: error.code === "grader_timeout" ? "grader_timeout" : error.code === "grader_error" ? "grader_error" : "infra_error",
    tier: "T1",
    isolation: setup.backend.isolation,
    grader,
    evidence: {},
    error: toErrorRecord(error),
    duration_ms,
  };
}
