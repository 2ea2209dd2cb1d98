/** A reward with its components, as a script prints it or a server answers it. */
import { z } from "zod";
import type { Verdict } from "../../base/schema/rollout.ts";

/** A component is a number, or a value with its weight; components explain the reward, they do not make it. */
export const ToldComponents = z
  .record(z.string(), z.union([z.number(), z.strictObject({ value: z.number().nullable(), weight: z.number().default(0) })]))
  .default({});
export type ToldComponents = z.infer<typeof ToldComponents>;

export function withWeights(components: ToldComponents): Verdict["components"] {
  return Object.fromEntries(
    Object.entries(components).map(([name, part]) => [name, typeof part === "number" ? { value: part, weight: 0 } : part]),
  );
}
