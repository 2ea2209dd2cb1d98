/** What `run --admitted-only` leaves in a run: the tasks that `alidade check` has admitted. */
import { AlidadeError } from "../../errors.ts";
import type { Grader } from "../../graders/grader.ts";
import { isShared } from "../../graders/shared/place-to-grade.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import type { AdmissionRecord } from "../../schema/admission.ts";
import type { Task } from "../../schema/task.ts";
import { contentHash } from "../../tasks/task-set.ts";
import { acceptedTasks, type OnTaskLeftOut } from "./accepted-tasks.ts";
import { readAdmission } from "./admission-records.ts";

export type AdmissionWanted = {
  /** Which checks count: `checksVersion`. */
  version: string;
  graders?: readonly Grader[];
  /** Gets the reason for each task that is not admitted. */
  onLeftOut: OnTaskLeftOut;
};

/** Throws where no task is left, and where sandboxes are no containers: admission says nothing of them. */
export function admittedTasks(
  tasks: readonly Task[],
  { capabilities }: Pick<SandboxBackend, "capabilities">,
  { version, graders, onLeftOut }: AdmissionWanted,
): Promise<Task[]> {
  if (capabilities.isolation === "none")
    throw new AlidadeError(
      "config_invalid",
      "admitted_only is set, and tasks are admitted for containers only: use --sandbox docker, or leave --admitted-only out",
      { param: "admitted_only" },
    );
  const accept = async (task: Task): Promise<void> => {
    if (isShared(task))
      throw new AlidadeError(
        "task_invalid",
        "grading is shared, and no such task is admitted: grade it fresh, or leave --admitted-only out",
        {
          param: "grading",
        },
      );
    const hash = await contentHash(task, graders);
    assertAdmitted(task, hash, await readAdmission(hash, version));
  };
  return acceptedTasks(tasks, accept, onLeftOut);
}

function assertAdmitted({ task_id }: Task, hash: string, record: AdmissionRecord | null): void {
  if (record?.admitted) return;
  const why =
    record === null
      ? `has no admission record of this version (hash ${hash}): \`alidade check\` makes one`
      : `is quarantined: ${record.reasons.map(({ message }) => message).join("; ")}. Mend the task and check it again`;
  throw new AlidadeError("task_invalid", `task ${task_id} ${why}`, { param: "admitted_only" });
}
