/** Which weights sampled a call's tokens, as far as the log knows. */
import { type Policy, samePolicy } from "../../base/schema/policy.ts";
import type { SamplePart, Tried, WeightSpan } from "../../base/schema/session-log.ts";
import type { CallHistory } from "./call-history.ts";

/** The policy when the call was let through to the engine that sampled its first token; it may have waited for that since it was begun. */
export function policyAtStart(call: CallHistory): Policy | null {
  const [first] = partsOf(call);
  return first === undefined ? policyOfLastTry(call) : (tryOf(call, first)?.policy ?? null);
}

function policyOfLastTry({ begun, tries }: CallHistory): Policy | null {
  const last = tries.at(-1);
  return last === undefined ? begun.policy : last.policy;
}

/** The parts of a sample that a fence interrupted, in order; empty where one try sampled it all. */
export function partsOf({ finished }: Pick<CallHistory, "finished">): readonly SamplePart[] {
  return finished?.parts ?? [];
}

/** Each part with the policy that sampled it. */
export function policyParts(call: CallHistory): { start: number; policy: Policy | null }[] {
  return partsOf(call).map((part) => ({ start: part.start, policy: tryOf(call, part)?.policy ?? null }));
}

function tryOf({ tries }: CallHistory, part: SamplePart): Tried | undefined {
  return tries.find((tried) => tried.try === part.try);
}

/** The first token of the last try: those before it are of earlier ones, whose policies are known. */
function startOfLast(call: CallHistory): number {
  return partsOf(call).at(-1)?.start ?? 0;
}

/** The weights changed during the generation, at an unknown token. */
function changedPolicy(call: CallHistory): boolean {
  const [start, end] = [policyOfLastTry(call), call.finished?.policy ?? null];
  const isOther = start !== null && end !== null && !samePolicy(start, end);
  return (isOther || call.finished?.policy_changed === true) && weightSpansOf(call) === null;
}

/**
 * Which weights sampled which tokens, by the engine's own word. One name for all of them is none: engines that know no
 * spans tell the name at the finish. Null too where the spans leave tokens out, or where their names are none of the call's policies:
 * an engine may have names of its own for them.
 */
export function weightSpansOf(call: CallHistory): WeightSpan[] | null {
  const spans = call.finished?.weights ?? [];
  if (spans.length < 2) return null;
  const length = call.finished?.sampled_ids?.length ?? 0;
  const isWhole = spans.every(({ version, start, end }, at) => {
    const before = spans[at - 1];
    const follows = before === undefined ? start <= startOfLast(call) : before.end === start && before.version !== version;
    return follows && start <= (end ?? length) && (at < spans.length - 1 || length <= (end ?? length));
  });
  const ends = [policyOfLastTry(call), call.finished?.policy ?? null].map((policy) => policy?.version);
  const areNamed = spans[0]?.version === ends[0] && spans.at(-1)?.version === ends[1];
  return isWhole && areNamed ? spans : null;
}

/** Whether it is unknown which weights sampled the call's token at this position. */
export function isUnattributed(call: CallHistory, position: number): boolean {
  return changedPolicy(call) && position >= knownBeforeHold(call);
}

/** How many of the first tokens are of a known policy though the weights changed later; 0 where that is unknown. */
export function knownBeforeHold(call: CallHistory): number {
  return weightSpansOf(call) === null ? Math.max(call.finished?.tokens_before_hold ?? 0, startOfLast(call)) : 0;
}

/** Positions of the sample at which other weights begin, or what is known of them ends. */
export function policyBounds(call: CallHistory): number[] {
  const spans = weightSpansOf(call)?.map(({ start }) => start) ?? [knownBeforeHold(call)];
  return [...new Set([...partsOf(call).map(({ start }) => start), ...spans])];
}

/** The version that sampled the call's token at this position; null where it is unknown. */
export function policyVersionAt(call: CallHistory, position: number): string | null {
  if (position < startOfLast(call)) return policyParts(call).findLast(({ start }) => start <= position)?.policy?.version ?? null;
  const spans = weightSpansOf(call);
  if (spans) return spans.find(({ start, end }) => start <= position && (end === null || position < end))?.version ?? null;
  if (isUnattributed(call, position)) return null;
  return (changedPolicy(call) ? policyOfLastTry(call) : call.finished?.policy)?.version ?? null;
}

/** By the try that answered it: one before may have been at an engine that answered nothing. */
export function isOfOtherPolicy({ tries }: CallHistory): boolean {
  return tries.at(-1)?.other_policy === true;
}
