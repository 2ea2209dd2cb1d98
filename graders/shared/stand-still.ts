/** Suspends the agent's processes while its work is read, if the task keeps them for grading (`keep_processes`). */
import { AlidadeError } from "../../base/errors.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/index.ts";
import { keepsProcesses } from "./place-to-grade.ts";

/** Suspends all processes inside until the sandbox is resumed. */
export async function standStill(sandbox: Pick<Sandbox, "pause">): Promise<void> {
  if (!sandbox.pause) throw cannotStand();
  await sandbox.pause();
}

/** Throws `task_invalid` if the task keeps its processes and this backend cannot suspend them. */
export function checkKept(task: Task, { capabilities }: Pick<SandboxBackend, "capabilities">): void {
  if (keepsProcesses(task) && !capabilities.keepsProcesses) throw cannotStand();
}

function cannotStand(): AlidadeError {
  return new AlidadeError(
    "task_invalid",
    "keep_processes is true, and processes of these sandboxes cannot stand still: use a backend whose processes can (--sandbox docker)",
    {
      param: "keep_processes",
    },
  );
}
