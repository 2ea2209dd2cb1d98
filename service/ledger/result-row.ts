/** The one row of a rollout, and the result of an attempt that gave none. */
import { lagAt } from "./admission.ts";
import { biasesOf, parkedByClock } from "./group-tools.ts";
import { type AttemptName, mostLost, mostLostInAll } from "./ledger.ts";
import type { AttemptResult, EarlierAttempt, ResultRow, SetSpec } from "./records.ts";

/** A rollout that is over, with what its group says of it. */
export type EndedRollout = {
  id: string;
  set_id: string;
  group_key: string;
  sample_index: number;
  attempt: number;
  earlier: EarlierAttempt[];
  /** The group's number in its set. */
  number: number;
  size: number;
  task_id: string;
  task_hash: string;
  spec: SetSpec;
};

/** `step`: the policy step in force. */
export function toResultRow(
  rollout: EndedRollout,
  state: ResultRow["state"],
  result: AttemptResult,
  { now, step }: { now: number; step: number | null },
): ResultRow {
  return {
    ...result,
    state,
    set_id: rollout.set_id,
    group_key: rollout.group_key,
    group_id: groupId(rollout.set_id, rollout.number),
    group_size: rollout.size,
    index: rollout.sample_index,
    rollout_id: rollout.id,
    attempt: rollout.attempt,
    earlier: rollout.earlier.filter(({ attempt }) => attempt < rollout.attempt),
    task_id: rollout.task_id,
    task_hash: rollout.task_hash,
    finished: now,
    ...lagAt(step, result.oldest_step, rollout.spec),
    biases: biasesOf(rollout.spec),
  };
}

/** Rollouts of one set that end as cancelled. `isParked`: a later group may go on from them. */
export type Cancelling = { set: string; spec: SetSpec; reason: string; isParked: boolean };

/** What cancelled rollouts have alike in their rows: all but what names a rollout, its group and its task. */
export function cancelledAlike({ set: set_id, spec, reason, isParked }: Cancelling, at: { now: number; step: number | null }) {
  const ofRollout = { id: "", group_key: "", sample_index: 0, attempt: 0, earlier: [], number: 0, size: 0, task_id: "", task_hash: "" };
  const parked = { stop_reason: "parked", mask_reason: "parked" };
  const result = { ...nothingMeasured("cancelled", isParked ? parkedByClock : reason), ...(isParked && parked) };
  const row = toResultRow({ ...ofRollout, set_id, spec }, "cancelled", result, at);
  const { group_key, group_id, group_size, index, rollout_id, attempt, earlier, task_id, task_hash, ...alike } = row;
  return alike;
}

export function groupId(set: string, number: number): string {
  return `${set}-${number}`;
}

/** An error may quote an engine's traceback; the whole of it stands in the attempt's record. Characters. */
const longestMessage = 500;

export function shortError({ code, message }: { code: string; message: string }): { code: string; message: string } {
  return { code, message: message.slice(0, longestMessage) };
}

/** The result of an attempt of which nothing came back, or which could not begin. */
export function nothingMeasured(code: string, message: string): AttemptResult {
  return {
    state: "failed",
    reward: null,
    components: {},
    stop_reason: code,
    mask_reason: code,
    error: shortError({ code, message }),
    session_id: null,
    policies: [],
    oldest_step: null,
    newest_step: null,
    forked_from: null,
    turns: 0,
    sampled_tokens: 0,
    trainable_tokens: 0,
    figures: null,
    resume: null,
    user: null,
    times: {},
    payload: null,
  };
}

/** Stands for the code of an attempt whose node died. */
export const nodeLost = "node_lost";

/**
 * How a node lost its attempts: another process joined under its name, or its lease ended. A slow node lives on after its lease, and
 * reports this when it joins again.
 */
export type NodeLoss = "replaced" | "silent";

/** `blameless`: attempts that the node does not blame, of this loss or an earlier one. */
export type NodeLosing = { by: NodeLoss; blameless?: readonly AttemptName[] };

/**
 * Ends a rollout if too many of its nodes died; null: not too many. `lost`: deaths for which the rollout is blamed. If the node is
 * silent, the last death does not count yet.
 */
export function nodesDied(lost: number, earlier: readonly EarlierAttempt[], by: NodeLoss): AttemptResult | null {
  const deaths = earlier.filter(({ code }) => code === nodeLost).length;
  const known = by === "silent" ? lost - 1 : lost;
  return known >= mostLost || deaths >= mostLostInAll ? setAside(`its node died while it ran, ${deaths} times`) : null;
}

/** Marks one attempt as `blameless`, and returns all attempts. null: it is marked already, or the node did not lose it. */
export function withBlameless(earlier: readonly EarlierAttempt[], node: string, { attempt }: AttemptName): EarlierAttempt[] | null {
  const at = earlier.findIndex((one) => one.attempt === attempt && one.node === node && one.code === nodeLost && !one.blameless);
  return at === -1 ? null : earlier.map((one, index) => (index === at ? { ...one, blameless: true } : one));
}

/** The end of a rollout that its node died of. `why`: a sentence without its dot. */
export function setAside(why: string): AttemptResult {
  return nothingMeasured("rollout_set_aside", `${why}. It is set aside; submit its task in a new group to run it again`);
}
