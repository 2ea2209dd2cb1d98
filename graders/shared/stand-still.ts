/** The agent's processes where they are kept for its grading (`keep_processes`): they stand while its work is read. */
import { AlidadeError } from "../../base/errors.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/sandbox.ts";
import { keepsProcesses } from "./place-to-grade.ts";

/** Nothing runs inside until the sandbox goes on. */
export async function standStill(sandbox: Pick<Sandbox, "pause">): Promise<void> {
  if (!sandbox.pause) throw cannotStand();
  await sandbox.pause();
}

/** Throws `task_invalid` for a task whose processes could not be kept there. */
export function checkKept(task: Task, { capabilities }: Pick<SandboxBackend, "capabilities">): void {
  if (keepsProcesses(task) && capabilities.isolation === "none") throw cannotStand();
}

function cannotStand(): AlidadeError {
  return new AlidadeError(
    "task_invalid",
    "keep_processes is true, and only processes of a container can stand still: use --sandbox docker",
    {
      param: "keep_processes",
    },
  );
}
