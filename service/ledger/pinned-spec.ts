/** What of a set's specification holds as it was when the set was made: the policy that was in force, and the demands of the service. */
import { AlidadeError } from "../../base/errors.ts";
import { canonicalJson } from "../../base/schema/ids.ts";
import { type ControlState, policyInForce } from "./control-state.ts";
import { assertAsStrict, strictest } from "./demands.ts";
import type { SetSpec } from "./records.ts";
import { refusals } from "./refusals.ts";

/**
 * Characters of one specification. A trainer's own words about a set are some hundred; more would stand in each list of sets and
 * with each claim.
 */
const mostChars = 64 * 1024;

/**
 * The specification as it is kept, as text. `known`: that of the set of its key, whose policy and demands stay; null: there is none. Throws 409
 * where no weights have a name, and where more is demanded than of the known set; 413 for one that is too long.
 */
export function pinnedSpec(spec: SetSpec, known: SetSpec | null, control: ControlState): string {
  if (known !== null) assertAsStrict(known, spec);
  const text = canonicalJson({ ...withPolicy(spec, known, control), ...(known && strictest(known, spec)) });
  if (text.length <= mostChars) return text;
  throw new AlidadeError(
    "request_invalid",
    `the set's labels and other fields have ${text.length} characters: give ${mostChars} at most, and keep longer words with the trainer`,
    { param: "labels", status: 413 },
  );
}

/** A set that is pinned to the policy in force stands for that policy, whatever is in force later. */
function withPolicy(spec: SetSpec, known: SetSpec | null, control: ControlState): SetSpec {
  if (spec.pinned_policy !== "in_force") return spec;
  if (known !== null) return known.pinned_policy == null ? spec : { ...spec, pinned_policy: known.pinned_policy };
  const pinned_policy = policyInForce(control);
  if (pinned_policy === null) throw refusals.noPolicy();
  return { ...spec, pinned_policy };
}
