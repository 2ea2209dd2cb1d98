/** What of a set's specification holds as it was when the set was made: the policy that was in force, and the demands of the service. */
import { type ControlState, policyInForce } from "./control-state.ts";
import { assertAsStrict, strictest } from "./demands.ts";
import type { SetSpec } from "./records.ts";
import { refusals } from "./refusals.ts";

/**
 * The specification as it is kept. `known`: that of the set of its key, whose policy and demands stay; null: there is none. Throws 409
 * where no weights have a name, and where more is demanded than of the known set.
 */
export function pinnedSpec(spec: SetSpec, known: SetSpec | null, control: ControlState): SetSpec {
  if (known !== null) assertAsStrict(known, spec);
  return { ...withPolicy(spec, known, control), ...(known && strictest(known, spec)) };
}

/** A set that is pinned to the policy in force stands for that policy, whatever is in force later. */
function withPolicy(spec: SetSpec, known: SetSpec | null, control: ControlState): SetSpec {
  if (spec.pinned_policy !== "in_force") return spec;
  if (known !== null) return known.pinned_policy == null ? spec : { ...spec, pinned_policy: known.pinned_policy };
  const pinned_policy = policyInForce(control);
  if (pinned_policy === null) throw refusals.noPolicy();
  return { ...spec, pinned_policy };
}
