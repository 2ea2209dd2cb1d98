import type { Task } from "../../base/schema/task.ts";
import { usesNetwork } from "../../sandboxes/index.ts";

/** Says of a task, as the end of a sentence, why its rollouts cannot be replayed, and so not forked; null: they can. */
export function whyNotReplayed({ steps, simulated_user }: Pick<Task, "steps" | "simulated_user">): string | null {
  if (steps) return "has steps, which cannot be replayed";
  return simulated_user ? "has a user, whose turns cannot be replayed" : null;
}

/** Returns the end of a sentence: why its commands may give other results in a replay; null: they give the same. */
export function whyUnrepeatable({ environment }: Pick<Task, "environment">): string | null {
  const { repeatable, services } = environment;
  if (repeatable !== undefined) return repeatable ? null : "has environment.repeatable: false";
  if (usesNetwork(environment)) return "reaches hosts (environment.network)";
  return services === undefined ? null : "has services (environment.services)";
}
