/** Chooses tasks for `--admitted-only` of a run or a service: those that `alidade check` has admitted on this machine. */
import { AlidadeError } from "../../base/errors.ts";
import { isIsolated } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Grader } from "../../graders/index.ts";
import { isShared, keepsProcesses } from "../../graders/shared/index.ts";
import type { SandboxBackend } from "../../sandboxes/index.ts";
import { acceptedTasks, type OnTaskLeftOut } from "./accepted-tasks.ts";
import { readAdmission } from "./admission-records.ts";

/** `version`: which checks count (`checksVersion`). */
type Checks = { version: string; graders?: readonly Grader[] | undefined };

export type AdmissionWanted = Checks & {
  /** Gets the reason for each task that is not admitted. */
  onLeftOut: OnTaskLeftOut;
};

/** Throws if no task is left, or if sandboxes isolate nothing, because admission says nothing about those. */
export function admittedTasks(
  tasks: readonly Task[],
  backend: Pick<SandboxBackend, "capabilities">,
  { onLeftOut, ...checks }: AdmissionWanted,
): Promise<Task[]> {
  assertIsolated(backend);
  return acceptedTasks(tasks, (task) => assertAdmitted(task, checks), onLeftOut);
}

/** Throws if sandboxes isolate nothing. There a hack may pay that did not pay in the check. */
export function assertIsolated({ capabilities }: Pick<SandboxBackend, "capabilities">): void {
  if (!isIsolated(capabilities.isolation))
    throw new AlidadeError(
      "config_invalid",
      "admitted_only is set, and tasks are admitted for isolated sandboxes only: use --sandbox docker, or leave --admitted-only out",
      { param: "admitted_only" },
    );
}

/** Throws `task_invalid` if the task is quarantined, or was not checked in its present form. */
export async function assertAdmitted(task: Task, { version, graders }: Checks): Promise<void> {
  if (isShared(task))
    throw new AlidadeError(
      "task_invalid",
      `task ${task.task_id}: ${keepsProcesses(task) ? "keep_processes is true" : "grading is shared"}, and no such task is admitted: grade it fresh, or leave --admitted-only out`,
      {
        param: keepsProcesses(task) ? "keep_processes" : "grading",
      },
    );
  const { contentHash } = await import("../../tasks/index.ts");
  const hash = await contentHash(task, graders);
  const record = await readAdmission(hash, version);
  if (record?.admitted) return;
  const why =
    record === null
      ? `has no admission record of this version (hash ${hash}): \`alidade check\` makes one`
      : `is quarantined: ${record.reasons.map(({ message }) => message).join("; ")}. Mend the task and check it again`;
  throw new AlidadeError("task_invalid", `task ${task.task_id} ${why}`, { param: "admitted_only" });
}
