/** Checks that the harness and the engines can take a task, before a sandbox is made. */
import { AlidadeError } from "../../base/errors.ts";
import type { Branching } from "../../base/schema/branching.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Harness } from "../../harnesses/index.ts";
import type { EnginePool } from "../../proxy/pool/index.ts";
import { whyNotReplayed, whyUnrepeatable } from "../replay/why-not-replayed.ts";

/** The fields of a harness that decide whether it can take a task. */
export type TakingHarness = Pick<Harness, "name" | "title" | "tools" | "skills" | "resumes">;

/**
 * Throws `task_invalid` if the task has servers of tools or skills and the harness takes none, or if the task has a user and the
 * harness cannot continue a conversation.
 */
export function assertTakesTask({ environment, simulated_user }: Task, { name, title, tools, skills, resumes }: TakingHarness): void {
  if (environment.tools && !tools) {
    const servers = environment.tools.map((server) => server.name).join(", ");
    throw invalid("environment.tools", `is ${servers}, and ${title} takes no servers of tools: use another harness than ${name}.`);
  }
  if (environment.skills !== undefined && skills === undefined)
    throw invalid(
      "environment.skills",
      `is ${environment.skills}, and ${title} reads no folder of skills: use another harness than ${name}.`,
    );
  if (simulated_user && !resumes)
    throw invalid(
      "simulated_user",
      `is set, and ${title} cannot go on with its conversation in a new process: use another harness than ${name}.`,
    );
}

/** Throws `task_invalid` for a task whose rollouts cannot be forked. A run or a set with `branching` takes none of them. */
export function assertForkable(task: Task, { unrepeatable = false }: Pick<Branching, "unrepeatable">): void {
  const { task_id, steps } = task;
  const not = whyNotReplayed(task);
  if (not !== null) {
    const message = `task ${task_id} ${not}, so its rollouts cannot be forked: run it without branching.`;
    throw new AlidadeError("task_invalid", message, { param: steps ? "steps" : "simulated_user" });
  }
  const why = unrepeatable ? null : whyUnrepeatable(task);
  if (why === null) return;
  const message = `task ${task_id} ${why}, so its commands may come to something else in a fork: give branching \`unrepeatable: true\` to fork it all the same, or the task \`environment: { repeatable: true }\` if they do not.`;
  throw new AlidadeError("task_invalid", message, { param: "environment.repeatable" });
}

/** Rejects with `task_invalid` for a user's model that no engine serves. */
export async function assertUserServed(
  { simulated_user }: Pick<Task, "simulated_user">,
  pool: Pick<EnginePool, "assertServes">,
): Promise<void> {
  const { model = null } = simulated_user ?? {};
  if (model === null) return;
  try {
    await pool.assertServes({ model });
  } catch (error) {
    if (!(error instanceof AlidadeError)) throw error;
    throw new AlidadeError("task_invalid", `simulated_user.${error.message}`, { param: "simulated_user.model" });
  }
}

function invalid(param: string, message: string): AlidadeError {
  return new AlidadeError("task_invalid", `${param} ${message}`, { param });
}
