/**
 * Is it trained, and if not, why? Everything that asks (the record, rows, every format, `export`, `fidelity`, `show`,
 * `record`) asks here. The rules stand in `rules.ts`, what they mean and how they are cured in `base/schema/reasons/`.
 */
import { type RecordedReason, recordedReasons, type UntrainedReason } from "../../base/schema/reasons/untrained.ts";
import type { Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import type { CallHistory } from "../log/call-history.ts";
import { imagesOf } from "../rows/images-of.ts";
import type { Standing } from "./loss-rules.ts";
import { policySteps } from "./policy-step.ts";
import {
  callRules,
  firstReason,
  type JudgedCall,
  type SampledCall,
  type TrainedSession,
  type Trainer,
  tokenRules,
  trainerRules,
} from "./rules.ts";

/** One that states nothing of itself. */
export const defaultTrainer: Trainer = {
  temperature: null,
  readsTemperatures: false,
  allowGrammar: false,
  readsSupport: false,
  leaveOut: [],
  wholeTurns: false,
  oldestStep: null,
  readsImages: true,
  objective: "rl",
};

type InLoss = Pick<Standing, "in_loss">;

/** Why the call's turn is not trained, whatever is known of its tokens: all that a form in words asks. */
export function whyTurnUntrained(call: JudgedCall, session: TrainedSession & InLoss): RecordedReason | null {
  return firstReason(callRules, call, session) ?? ofRollout(session);
}

/** Why the call's token at this position is not trained, by the record alone. `hasPrompt`: the ids of its prompt are known. */
export function whyRecordedUntrained(
  call: { judged: JudgedCall; history: CallHistory; hasPrompt: boolean; position: number },
  session: TrainedSession & InLoss,
): RecordedReason | null {
  const { judged, history, hasPrompt, position } = call;
  return firstReason(callRules, judged, session) ?? firstReason(tokenRules, history, hasPrompt, position) ?? ofRollout(session);
}

/** The reason; null where the node's tokens may be trained, apart from those that a grammar forced. */
export type Judge = (node: TreeNode) => UntrainedReason | null;

/**
 * What the record alone says of the node, whatever the trainer; null: nothing. On a node there may be a reason of the
 * default trainer's instead, which is asked for anew.
 */
export function recordedReasonOf({ reason }: Pick<TreeNode, "reason">): RecordedReason | null {
  return reason !== null && isRecorded(reason) ? reason : null;
}

function isRecorded(reason: UntrainedReason): reason is RecordedReason {
  return Object.hasOwn(recordedReasons, reason);
}

/** Asks of a stored trajectory under a trainer's options, and under what the rules for whole rollouts made of it. */
export function toJudge(trajectory: Pick<Trajectory, "calls" | "nodes" | "messages">, trainer: Trainer, standing: InLoss): Judge {
  const images = imagesOf(trajectory);
  const forced = new Set(trajectory.nodes.filter((node) => node.forced?.includes(true)).map(({ call_id }) => call_id));
  const ofCall = new Map<string, UntrainedReason | null>();
  for (const call of trajectory.calls) {
    const sampled: SampledCall = {
      ...call,
      seesImage: images.size > 0 && call.input.some((id) => images.has(id)),
      hasForced: forced.has(call.call_id),
    };
    ofCall.set(call.call_id, firstReason(trainerRules[trainer.objective], sampled, trainer));
  }
  const whyStale = toStaleJudge(trajectory, trainer);
  const lifted = trainer.objective === "sft" ? liftedForSft : liftedAlways;
  return (node) => {
    const recorded = recordedReasonOf(node);
    return recorded === null || lifted.has(recorded) ? (ofCall.get(node.call_id) ?? whyStale(node) ?? ofRollout(standing)) : recorded;
  };
}

/** The nodes with the default trainer's answer on each: one meaning of `trainable` for nodes, fidelity report and rows. */
export function judgedNodes(trajectory: Pick<Trajectory, "calls" | "nodes" | "messages" | "in_loss">): TreeNode[] {
  const judge = toJudge(trajectory, defaultTrainer, trajectory);
  return trajectory.nodes.map((node) => {
    if (node.kind !== "sampled") return node;
    const reason = judge(node);
    return { ...node, trainable: reason === null, reason };
  });
}

/** Imitation has no importance ratio that could grow with a policy's age. */
function toStaleJudge({ calls, nodes }: Pick<Trajectory, "calls" | "nodes">, { oldestStep, objective, wholeTurns }: Trainer): Judge {
  if (oldestStep === null || objective === "sft") return () => null;
  const stepOf = policySteps(calls);
  const whyNot: Judge = (node) => {
    const step = stepOf(node);
    return step === null ? "no_policy_step" : step < oldestStep ? "stale_policy" : null;
  };
  if (!wholeTurns) return whyNot;
  const reasons = nodes.flatMap((node) => (node.kind === "sampled" ? [[node.call_id, whyNot(node)] as const] : []));
  const ofCall = new Map(reasons.filter(([, reason]) => reason !== null));
  return ({ call_id }) => ofCall.get(call_id) ?? null;
}

/** The record's own mask gives way to the standing under the rules. */
const liftedAlways: ReadonlySet<RecordedReason> = new Set(["masked_rollout"]);

/** Imitation needs the ids alone. */
const liftedForSft: ReadonlySet<RecordedReason> = new Set([...liftedAlways, "no_logprob", "unattributed_policy"]);

function ofRollout({ in_loss }: InLoss): "masked_rollout" | null {
  return in_loss ? null : "masked_rollout";
}

/** Has the node a token that could be trained, that is, one that a grammar did not force? */
export function hasChoice({ kind, forced }: TreeNode): boolean {
  return kind === "sampled" && (forced === undefined || forced.includes(false));
}
