import { AlidadeError } from "../../base/errors.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Harness } from "../../harnesses/index.ts";

/** What is asked of a harness before it gets a task. */
export type TakingHarness = Pick<Harness, "name" | "title" | "tools">;

/** Throws `task_invalid` for a task with servers of tools and a harness that takes none: its model could not call them. */
export function assertTakesTools({ environment }: Task, { name, title, tools }: TakingHarness): void {
  if (!environment.tools || tools) return;
  const servers = environment.tools.map((server) => server.name).join(", ");
  const message = `environment.tools is ${servers}, and ${title} takes no servers of tools: use another harness than ${name}.`;
  throw new AlidadeError("task_invalid", message, { param: "environment.tools" });
}
