import type { Task } from "../../base/schema/task.ts";

/** Says of a task, as the end of a sentence, why its rollouts cannot be replayed, and so not forked; null: they can. */
export function whyNotReplayed({ steps, simulated_user }: Pick<Task, "steps" | "simulated_user">): string | null {
  if (steps) return "has steps, which cannot be replayed";
  return simulated_user ? "has a user, whose turns cannot be replayed" : null;
}
