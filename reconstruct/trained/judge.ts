/** Why sampled tokens of the tree are not trained under a trainer's options, whatever rows there are. */
import type { CallRecord, Trajectory, TreeNode } from "../../schema/trajectory.ts";
import type { Path } from "../selection/selection.ts";
import type { LossRules, Standing } from "./loss-rules.ts";

/** The reason; null where the node's tokens may be trained (those that a grammar did not force). */
export type Judge = (node: TreeNode) => string | null;

export type JudgeOptions = Pick<LossRules, "leaveOut"> & {
  allowGrammar: boolean;
  objective: "rl" | "sft";
  refuse: (call: CallRecord) => string | null;
};

/** What only a loss on recorded logprobs needs; imitation needs the ids alone. */
const aboutLogprobs = new Set<string | null>(["no_logprob", "unattributed_policy"]);

export function toJudge(trajectory: Trajectory, options: JudgeOptions, { in_loss }: Standing): Judge {
  const reasons = new Map(
    trajectory.calls.map((call) => [call.call_id, reasonOfCall(call, options) ?? (in_loss ? null : "masked_rollout")]),
  );
  const holes = options.objective === "rl" ? callsWithHoles(trajectory.nodes) : new Set<string>();
  return (node) => {
    const isUnmasked = node.reason === "masked_rollout" && in_loss;
    // Files of before say nothing of missing logprobs where the rollout was masked anyway.
    if (isUnmasked && holes.has(node.call_id)) return "no_logprob";
    const isLifted = isUnmasked || (options.objective === "sft" && aboutLogprobs.has(node.reason));
    return node.trainable || isLifted ? (reasons.get(node.call_id) ?? null) : (node.reason ?? "unknown");
  };
}

function callsWithHoles(nodes: TreeNode[]): Set<string> {
  const isHole = ({ kind, logprobs }: TreeNode) => kind === "sampled" && (logprobs === null || logprobs.includes(null));
  return new Set(nodes.filter(isHole).map((node) => node.call_id));
}

function reasonOfCall(call: CallRecord, { leaveOut, allowGrammar, objective, refuse }: JudgeOptions): string | null {
  if (leaveOut.includes(call.request_class)) return "left_out_class";
  if (objective === "rl" && call.logprob_semantics.grammar && !allowGrammar) return "grammar";
  return refuse(call);
}

/** Does this path train some of the node's tokens, if it is the one that gets them? */
export function isTrained(node: TreeNode, path: Path, judge: Judge): boolean {
  return node.kind === "sampled" && path.trains(node) && judge(node) === null && (node.forced === undefined || node.forced.includes(false));
}
