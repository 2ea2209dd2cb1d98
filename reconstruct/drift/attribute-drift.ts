/**
 * What makes a trainer's logprobs differ, by the evidence of the record. Calls whose context is exact from the root on are the
 * control: an engine's numerics or weights show in them too, a template's or a harness's doing does not.
 */
import { type driftCauses, partedBy } from "../../base/schema/reasons/drift.ts";
import type { CallDrift } from "./call-drift.ts";

export type DriftCause = keyof typeof driftCauses;

/** `cause` is null where the logprobs agree or could not be compared; `why` is the evidence, or what is missing of it. */
export type AttributedDrift = CallDrift & { cause: DriftCause | null; why: string | null };

/** Share of a call's tokens that must differ before its engine is named. Rounding in bfloat16 moves single tokens. */
const spreadShare = 0.1;

/** Sampled tokens that are next to the edge before them: there a context in other tokens shows most. */
const nearEdge = 8;

export function attributeDrift(calls: readonly CallDrift[]): AttributedDrift[] {
  const controls = Map.groupBy(calls.filter(isControl), ({ sampled_by }) => sampled_by);
  return calls.map((call) => ({ ...call, ...causeOf(call, controls.get(call.sampled_by) ?? []) }));
}

function isControl({ parted, compared, other_weights, is_shifted }: CallDrift): boolean {
  return parted === null && compared > 0 && !other_weights && !is_shifted;
}

type Cause = Pick<AttributedDrift, "cause" | "why">;
const unknown = (why: string): Cause => ({ cause: "not_attributable", why });

function causeOf(call: CallDrift, controls: readonly CallDrift[]): Cause {
  const { drifted, compared, parted } = call;
  if (drifted === 0) return { cause: null, why: null };
  if (call.is_shifted) return { cause: "alignment", why: "moved by one token, all of them agree" };
  if (call.other_weights) return { cause: "policy", why: "other weights sampled it than recomputed it" };
  const differ = `${drifted} of ${compared} tokens differ`;
  if (parted === null)
    return isSpread(call)
      ? { cause: "engine", why: `${differ} in an exact context` }
      : unknown(`${differ} in an exact context: too few to name the engine`);
  if (controls.length === 0) return unknown("no call of the same engine and weights has an exact context to compare with");
  if (!isSpread(call) && (call.max?.at ?? 0) >= nearEdge)
    return unknown(`${differ}, the largest at token ${call.max?.at}, not next to where its context parts`);
  const apart = controls.filter(isSpread).length;
  const control = `${apart} of ${controls.length} calls with an exact context differ as well`;
  if (apart * 2 >= controls.length) return { cause: "engine", why: control };
  if (apart > 0) return unknown(control);
  const owner = partedBy[parted];
  if (owner === null) return unknown(`its context parts by ${parted}, which template and harness both may do`);
  return { cause: owner, why: `its context parts by ${parted}, and no call with an exact context differs` };
}

function isSpread({ drifted, compared }: CallDrift): boolean {
  return drifted >= 2 && drifted / compared >= spreadShare;
}
