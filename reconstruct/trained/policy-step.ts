/** At which of the trainer's steps a call's tokens were sampled. */
import type { Policy } from "../../base/schema/policy.ts";
import type { CallRecord } from "../../base/schema/trajectory.ts";

/** null: the version has no step, or is unknown. */
export type StepOf = (node: { call_id: string; policy_version: string | null }) => number | null;

/**
 * Steps are looked up by call: one name may have other steps in other calls. Where a call's two policies share a name, only
 * tokens of the first one have a version.
 */
export function policySteps(calls: readonly Pick<CallRecord, "call_id" | "policy">[]): StepOf {
  const ofCall = new Map(calls.map(({ call_id, policy }) => [call_id, policiesOf(policy)]));
  const all = [...ofCall.values()].flat();
  return ({ call_id, policy_version }) => {
    if (policy_version === null) return null;
    const isIt = ({ version }: Policy): boolean => version === policy_version;
    // Another call names it only where an engine told a span in the middle of a call that went through more than two policies.
    return (ofCall.get(call_id)?.find(isIt) ?? all.find(isIt))?.step ?? null;
  };
}

function policiesOf({ start, end, parts = [] }: CallRecord["policy"]): Policy[] {
  return [start, ...parts.map(({ policy }) => policy), end].filter((each) => each !== null);
}
