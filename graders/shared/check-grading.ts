/** Says which tasks can be graded in the agent's own sandbox, and what that costs. */
import { AlidadeError } from "../../base/errors.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Grader } from "../grader.ts";
import { withParts } from "../registry.ts";
import { isShared, keepsProcesses } from "./place-to-grade.ts";

/** Throws `task_invalid` for a task that asks for the agent's own sandbox and cannot be graded there. */
export function checkGrading(task: Task, known?: readonly Grader[]): void {
  const why = isShared(task) ? whyNot(task, known) : null;
  if (why === null) return;
  const [param, said] = keepsProcesses(task) ? ["keep_processes", "keep_processes is true"] : ["grading", "grading is shared"];
  throw new AlidadeError("task_invalid", `${said}, but ${why}: grade it fresh`, { param });
}

/** Whether the task could be graded while the agent's processes live. */
export function canKeep(task: Task, known?: readonly Grader[]): boolean {
  return whyNot({ ...task, keep_processes: true }, known) === null;
}

function whyNot(task: Task, known?: readonly Grader[]): string | null {
  const { environment, grader } = task;
  if (keepsProcesses(task) && task.grading === "fresh") return "grading is fresh, where no process of an agent lives";
  if (keepsProcesses(task) && task.steps !== undefined)
    return "it has steps, and what the agent leaves running could read the tests of one and tell the next";
  if (keepsProcesses(task) && Object.values(environment.services ?? {}).some(({ state }) => state.length > 0))
    return "what its services hold is read once every process of the agent has ended (state)";
  if (environment.conceal !== null) return "environment.conceal takes from the agent's sandbox what the tests need";
  const specs = withParts(grader, known).map(
    ({ spec }) => spec as { kind: string; user?: unknown; test_patch?: unknown; test_files?: unknown },
  );
  if (specs.some(({ kind, test_patch, test_files }) => kind === "tests" && (test_patch ?? test_files) != null))
    return "its test_patch and test_files fit the delivered files alone, and the agent may have changed them";
  const lacksUser = specs.some(({ kind, user }) => kind === "harbor" && user === "agent" && environment.user === "root");
  return lacksUser ? "its tests want another user than root, and a sandbox of root has no other one" : null;
}

/** Returns one line for a person; null: no task is graded that way. */
export function costOfSharing(tasks: readonly Task[]): string | null {
  const shared = tasks.filter(isShared).length;
  const kept = tasks.filter(keepsProcesses).length;
  if (shared === 0) return null;
  return `GRADED IN THE AGENT'S OWN SANDBOX (grading: shared): ${shared} of ${tasks.length} tasks${kept === 0 ? "" : `, ${kept} of them while its processes live (keep_processes)`}. What an agent leaves there (programs, libraries, settings, tests) can change its grade, so these verdicts are of tier T0 and cannot be made again`;
}
