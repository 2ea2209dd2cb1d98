/**
 * Trajectory -> flat rows, in this order: select traces, cut the ones that are too long, filter calls, and only then
 * give each trained token to one row. Any other order would give tokens to rows that are dropped afterwards.
 */
import type { CallRecord, Trace, Trajectory, TreeNode } from "../schema/trajectory.ts";
import type { FlatRow, FlatSegment } from "./flat-row.ts";
import { TokenPaths } from "./token-paths.ts";

export type FlattenOptions = {
  /** Tokens a row may have; a longer one keeps its exact prefix up to the end of a call. null: no limit. */
  maxTokens: number | null;
  /** Train tokens that were sampled under a grammar: their logprobs hold under its mask only. */
  allowGrammar: boolean;
  /** Why a call is not trained, by a rule of whoever flattens (what its format cannot say); null where it may be. */
  refuse?: (call: CallRecord) => string | null;
  /** Which traces; default all. */
  select?: (trace: Trace, trajectory: Trajectory) => boolean;
};

export type FlatRows = {
  rows: FlatRow[];
  /** Reason -> calls none of whose sampled tokens is trained in any row. */
  left_out: Record<string, number>;
};

export function flatten(trajectory: Trajectory, options: FlattenOptions): FlatRows {
  const { rows, left_out } = flattenLazily(trajectory, options);
  return { rows: [...rows], left_out };
}

/** The same, row by row: where contexts drift at every turn, all rows together are many times the tree. */
export function flattenLazily(
  trajectory: Trajectory,
  options: FlattenOptions,
): { rows: Iterable<FlatRow>; left_out: Record<string, number> } {
  const judge = toJudge(trajectory, options);
  const paths = new TokenPaths(trajectory);
  const selected = trajectory.traces.filter((trace) => options.select?.(trace, trajectory) ?? true);
  const whole = selected.map((trace) => ({ trace, nodes: paths.nodes(trace.leaf_node_id), cut: false }));
  const sampledLength = new Map(trajectory.calls.map((call) => [call.call_id, call.sampled_length]));
  const fitting = whole.map((path) => cutToLimit(path, options.maxTokens, sampledLength));
  const kept = dropCovered(fitting.map((path) => trimToTrained(path, judge)));
  const owners = chooseOwners(kept);
  return { rows: toRows(kept, owners, judge, trajectory), left_out: countLeftOut(trajectory, owners, judge) };
}

function* toRows(paths: Path[], owners: Map<string, Path>, judge: Judge, trajectory: Trajectory): Iterable<FlatRow> {
  for (const path of paths) yield toRow(path, owners, judge, trajectory);
}

type Path = { trace: Trace; nodes: TreeNode[]; cut: boolean };

/** Why a sampled node is not trained; null where it may be. */
type Judge = (node: TreeNode) => string | null;

function toJudge(trajectory: Trajectory, options: FlattenOptions): Judge {
  const grammar = new Set(trajectory.calls.filter((call) => call.logprob_semantics.grammar).map((call) => call.call_id));
  const refused = new Map(trajectory.calls.map((call) => [call.call_id, options.refuse?.(call) ?? null]));
  return (node) => {
    if (!node.trainable) return node.reason ?? "unknown";
    if (grammar.has(node.call_id) && !options.allowGrammar) return "grammar";
    return refused.get(node.call_id) ?? null;
  };
}

function isTrained(node: TreeNode, judge: Judge): boolean {
  return node.kind === "sampled" && judge(node) === null && (node.forced === undefined || node.forced.includes(false));
}

const lengthOf = (nodes: TreeNode[]): number => nodes.reduce((length, node) => length + node.token_ids.length, 0);

/** Up to the last end of a whole sample within the limit: half a turn is no action of the policy. */
function cutToLimit(path: Path, maxTokens: number | null, sampledLength: Map<string, number | null>): Path {
  if (maxTokens === null || lengthOf(path.nodes) <= maxTokens) return path;
  let [length, keep, ofCall] = [0, 0, 0];
  for (const [index, node] of path.nodes.entries()) {
    length += node.token_ids.length;
    if (length > maxTokens) break;
    const continues = node.kind === "sampled" && path.nodes[index - 1]?.call_id === node.call_id;
    ofCall = node.kind !== "sampled" ? 0 : (continues ? ofCall : 0) + node.token_ids.length;
    if (node.kind === "sampled" && ofCall === sampledLength.get(node.call_id)) keep = index + 1;
  }
  return { ...path, nodes: path.nodes.slice(0, keep), cut: true };
}

/** Tokens after the last trained one cost the trainer and teach nothing. */
function trimToTrained(path: Path, judge: Judge): Path {
  const last = path.nodes.findLastIndex((node) => isTrained(node, judge));
  return { ...path, nodes: path.nodes.slice(0, last + 1) };
}

/** A path that is a prefix of another one has nothing of its own; so has a path without a trained token. */
function dropCovered(paths: Path[]): Path[] {
  const inner = new Set<string>();
  for (const { nodes } of paths) for (const node of nodes.slice(0, -1)) inner.add(node.node_id);
  return paths.filter(({ nodes }) => {
    const end = nodes.at(-1)?.node_id;
    if (end === undefined || inner.has(end)) return false;
    inner.add(end);
    return true;
  });
}

/**
 * Node id -> the path that trains it: of those that contain it, the one that has most of its call, so that a turn
 * whose second half was dropped by a later context is still trained in one piece; then the first.
 */
function chooseOwners(paths: Path[]): Map<string, Path> {
  const owners = new Map<string, { path: Path; tokens: number }>();
  for (const path of paths) {
    const tokensOfCall = new Map<string, number>();
    const sampled = path.nodes.filter((node) => node.kind === "sampled");
    for (const node of sampled) tokensOfCall.set(node.call_id, (tokensOfCall.get(node.call_id) ?? 0) + node.token_ids.length);
    for (const node of sampled) {
      const tokens = tokensOfCall.get(node.call_id) ?? 0;
      if (tokens > (owners.get(node.node_id)?.tokens ?? 0)) owners.set(node.node_id, { path, tokens });
    }
  }
  return new Map([...owners].map(([nodeId, { path }]) => [nodeId, path]));
}

function toRow(path: Path, owners: Map<string, Path>, judge: Judge, trajectory: Trajectory): FlatRow {
  const length = lengthOf(path.nodes);
  const row: FlatRow = {
    schema_version: 1,
    trajectory_id: trajectory.trajectory_id,
    trace_id: path.trace.trace_id,
    rollout_id: trajectory.rollout_id,
    group_id: trajectory.group.id,
    sample_index: trajectory.group.sample_index,
    agent: path.trace.agent,
    token_ids: new Array<number>(length),
    loss_mask: new Array<0>(length).fill(0),
    logprobs: new Array<null>(length).fill(null),
    segments: [],
    reward: trajectory.reward,
    in_baseline: trajectory.in_baseline,
    prompt_length: lengthOf(
      path.nodes.slice(
        0,
        path.nodes.findIndex((node) => node.kind === "sampled"),
      ),
    ),
    cut: path.cut,
  };
  let start = 0;
  for (const node of path.nodes) {
    row.segments.push(toSegment(row, start, node, whyNotHere(node, path, owners, judge)));
    start += node.token_ids.length;
  }
  return row;
}

/** undefined: a node that nobody sampled has no reason. */
function whyNotHere(node: TreeNode, path: Path, owners: Map<string, Path>, judge: Judge): string | null | undefined {
  if (node.kind !== "sampled") return undefined;
  return judge(node) ?? (owners.get(node.node_id) === path ? null : "other_row");
}

/** Fills in ids, mask and logprobs of the node's tokens, which begin at `start`, and describes them. */
function toSegment(row: FlatRow, start: number, node: TreeNode, whyNot: string | null | undefined): FlatSegment {
  const { kind, call_id, node_id, policy_version } = node;
  let trained = 0;
  for (let at = 0; at < node.token_ids.length; at++) row.token_ids[start + at] = node.token_ids[at] as number;
  for (let at = 0; kind === "sampled" && at < node.token_ids.length; at++) {
    row.logprobs[start + at] = node.logprobs?.[at] ?? null;
    if (whyNot !== null || node.forced?.[at] === true) continue;
    row.loss_mask[start + at] = 1;
    trained++;
  }
  const reason = whyNot === null && trained === 0 ? "forced" : (whyNot ?? null);
  return { start, end: start + node.token_ids.length, kind, call_id, node_id, policy_version, trainable: trained > 0, reason };
}

/** A call counts once, under the first reason met; one that is trained anywhere is not left out. */
function countLeftOut(trajectory: Trajectory, owners: Map<string, Path>, judge: Judge): Record<string, number> {
  const sampled = trajectory.nodes.filter((node) => node.kind === "sampled");
  const trained = new Set(sampled.filter((node) => owners.has(node.node_id) && isTrained(node, judge)).map((node) => node.call_id));
  const reasons = new Map<string, string>();
  for (const node of sampled)
    if (!trained.has(node.call_id) && !reasons.has(node.call_id)) reasons.set(node.call_id, whyLeftOut(node, judge));
  for (const call of trajectory.calls)
    if (!trained.has(call.call_id) && !reasons.has(call.call_id) && call.output !== null) reasons.set(call.call_id, "no_token_ids");
  const counts: Record<string, number> = {};
  for (const reason of reasons.values()) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}

function whyLeftOut(node: TreeNode, judge: Judge): string {
  const reason = judge(node);
  if (reason !== null) return reason;
  if (node.forced?.includes(false) === false) return "forced";
  // It could be trained, but no row reaches it: cut, or its trace was not selected.
  return "over_length";
}
