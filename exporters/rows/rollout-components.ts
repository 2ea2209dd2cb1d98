/** The reward components of the rollout as a whole, by name; null: it could not be measured. */
import type { Trajectory } from "../../base/schema/trajectory.ts";

export function rolloutComponents({ reward_components }: Trajectory): Record<string, number | null> {
  return Object.fromEntries(reward_components.filter(({ scope }) => scope === "rollout").map(({ name, value }) => [name, value]));
}
