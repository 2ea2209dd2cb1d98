/** What was measured of the rollout as a whole, by name; null where it could not be. */
import type { Trajectory } from "../../schema/trajectory.ts";

export function rolloutValues({ values }: Trajectory): Record<string, number | null> {
  return Object.fromEntries(values.filter(({ scope }) => scope === "rollout").map(({ name, value }) => [name, value]));
}
