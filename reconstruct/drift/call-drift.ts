/** How far a trainer's recomputed logprobs are from a call's recorded ones, with what the record says of its context. */
import type { CallRecord, EdgeCause, Trajectory } from "../../base/schema/trajectory.ts";
import { imagesOf } from "../rows/images-of.ts";
import { whyNotHeld } from "./told-tokens.ts";
import type { TrainerLogprobs } from "./trainer-logprobs.ts";

export type CallDrift = {
  rollout: string;
  call_id: string;
  /** Number of the call in its session, from 0. */
  ordinal: number;
  /** Sampled tokens that both have a logprob of. */
  compared: number;
  /** |recorded - recomputed| in nats; null where nothing was compared. */
  mean: number | null;
  max: { difference: number; at: number } | null;
  /** Tokens that differ by more than the tolerance. */
  drifted: number;
  /** Why nothing was compared, in a word. */
  not_comparable: string | null;
  /** As an aligned list would be if the trainer's were moved by one token. */
  is_shifted: boolean;
  /** The call was sampled by other weights than those that recomputed it, as far as either is told. */
  other_weights: boolean;
  /** Calls with the same engine and weights are held against each other. */
  sampled_by: string;
  /** Why the nearest context before it parts (`unknown` where that is not told); null: all of its context is exact. */
  parted: EdgeCause | null;
};

/** One for each call that the trainer tells of. Both lists of a call count from its first sampled token. */
export function driftOf(trajectory: Trajectory, given: ReadonlyMap<string, TrainerLogprobs>, tolerance: number): CallDrift[] {
  const byId = new Map(trajectory.calls.map((call) => [call.call_id, call]));
  const images = imagesOf(trajectory);
  return trajectory.calls.flatMap((call) => {
    const told = given.get(call.call_id);
    return told === undefined ? [] : [driftOfCall(call, told, { trajectory, byId, images, tolerance })];
  });
}

type ToldCalls = {
  trajectory: Trajectory;
  byId: ReadonlyMap<string, CallRecord>;
  /** Ids of the messages that show one. */
  images: ReadonlySet<string>;
  tolerance: number;
};

function driftOfCall(call: CallRecord, told: TrainerLogprobs, { trajectory, byId, images, tolerance }: ToldCalls): CallDrift {
  const nodes = trajectory.nodes.filter((node) => node.call_id === call.call_id && node.kind === "sampled");
  const recorded = nodes.flatMap(({ token_ids, logprobs }) => logprobs ?? token_ids.map(() => null));
  const not = whyNotHeld(call, nodes, told, images);
  const differences = not === null ? differencesOf(recorded, told.logprobs, 0) : [];
  const drifted = driftedOf(differences, tolerance);
  const max = differences.reduce<CallDrift["max"]>((most, one) => (most === null || one.difference > most.difference ? one : most), null);
  return {
    rollout: trajectory.rollout_id ?? trajectory.session_id,
    call_id: call.call_id,
    ordinal: call.ordinal,
    compared: differences.length,
    mean: max && differences.reduce((sum, { difference }) => sum + difference, 0) / differences.length,
    max,
    drifted,
    not_comparable: not ?? (max === null ? "no_logprob" : null),
    // A move by one leaves out a token of an end, so a single one that drifts there would look moved.
    is_shifted: drifted > 1 && [-1, 1].some((by) => isAligned(differencesOf(recorded, told.logprobs, by), tolerance)),
    other_weights: hasOtherWeights(call, told),
    sampled_by: JSON.stringify([call.engine_name ?? call.engine, call.engine_model, call.policy.start?.version ?? null]),
    parted: partedAt(call, byId),
  };
}

type TokenDifference = { difference: number; at: number };

function differencesOf(recorded: readonly (number | null)[], told: readonly (number | null)[], by: number): TokenDifference[] {
  return recorded.flatMap((logprob, at) => {
    const again = told[at + by] ?? null;
    return logprob === null || again === null ? [] : [{ difference: Math.abs(logprob - again), at }];
  });
}

const driftedOf = (differences: readonly TokenDifference[], tolerance: number): number =>
  differences.filter(({ difference }) => !(difference <= tolerance)).length;

/** So many tokens do not fit each other by chance. */
const fewestAligned = 4;

function isAligned(differences: readonly TokenDifference[], tolerance: number): boolean {
  return differences.length >= fewestAligned && driftedOf(differences, tolerance) === 0;
}

function hasOtherWeights({ policy: { start, end, spans } }: CallRecord, { policy_version }: TrainerLogprobs): boolean {
  const isSpanning = spans.length > 1 || (start !== null && end !== null && start.version !== end.version);
  return isSpanning || (policy_version !== null && start !== null && start.version !== policy_version);
}

/** The edge that parts, of the call itself or of the nearest call before it. A root, or a chain of exact edges to one, has none. */
function partedAt(call: CallRecord, byId: ReadonlyMap<string, CallRecord>): EdgeCause | null {
  const seen = new Set<string>();
  for (let one: CallRecord | undefined = call; one !== undefined && !seen.has(one.call_id); one = byId.get(one.parent_call_id ?? "")) {
    seen.add(one.call_id);
    if (one.match === "root") return null;
    if (one.match !== "exact") return one.cause ?? "unknown";
  }
  return null;
}
