/** What the engines say of the policy that the configuration names; one that differs was refused before. */

import type { HarnessProxy } from "../../../proxy/index.ts";
import type { Config } from "../../config.ts";

/** One sentence for each engine with named weights. */
export function policyNotes(config: Pick<Config, "policy" | "engines">, proxy: HarnessProxy): string[] {
  const isNamed = config.policy !== null || config.engines?.some(({ policy }) => policy !== undefined);
  if (!isNamed) return [];
  return proxy.pool.slots.flatMap((slot) => {
    const { name, policy, policy_check } = slot.describe();
    if (policy === null) return [];
    const says = policy_check === "agrees" ? "the engine says the same" : "unchecked, for the engine tells no version of its weights";
    return [`policy ${policy.version}${policy.step === null ? "" : ` (step ${policy.step})`} of engine ${name}: ${says}`];
  });
}
