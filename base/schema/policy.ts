/** A trainer may load new weights under the same name and count them by steps. Name and step together identify a policy. */
import { z } from "zod";

export const Policy = z.strictObject({
  /** The trainer's name for the weights. */
  version: z.string(),
  /** The trainer's step, where it gave one. */
  step: z.number().int().nullable(),
});
export type Policy = z.infer<typeof Policy>;

export function samePolicy(one: Policy | null, other: Policy | null): boolean {
  return one?.version === other?.version && one?.step === other?.step;
}

/** For a sentence: `"v1"`, or `"v1" (step 7)` where the trainer gave one. */
export function nameOfPolicy(policy: Policy | null): string {
  if (policy === null) return "unnamed";
  return policy.step === null ? `"${policy.version}"` : `"${policy.version}" (step ${policy.step})`;
}
