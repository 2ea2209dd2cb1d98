/**
 * The audit of a trajectory: every sampled token is scored again by teacher forcing, in the context that the tree says
 * it was sampled in, and compared with its recorded logprob. A context that was never there, a token that was edited,
 * a logprob that belongs to its neighbour: all show as a difference. What was not sampled from the plain distribution
 * (a grammar's mask, processed logprobs at another temperature), or behind a picture whose place is not known, is
 * reported as not comparable and never as passed.
 */
import { isBent, type Sampling } from "../base/schema/message.ts";
import type { CallRecord, Trajectory, TreeNode } from "../base/schema/trajectory.ts";
import { isLogprob } from "../base/tokens/alignment.ts";
import { imagesOf } from "./rows/images-of.ts";
import { coveringPaths, picturesOf, type Score } from "./tree/covering-paths.ts";

export type AuditOptions = {
  /** Nats. 1e-4 is what two f32 implementations of the same weights stay within; bf16 needs about 0.05. */
  tolerance: number;
  /** `score` is given the pictures. Else calls that saw one are not comparable. */
  readsImages?: boolean;
  /** Only calls of this policy version; others are not comparable. */
  policyVersion?: string | undefined;
  /** Told of each call that was compared, as a trainer would tell of it: a number for each sampled token from the first one on. */
  onScored?: (call_id: string, logprobs: (number | null)[]) => void;
};

export type CallAudit = {
  call_id: string;
  ordinal: number;
  status: "ok" | "mismatch" | "not_comparable";
  /** Tokens that were compared, and how many of them differ. */
  compared: number;
  wrong: number;
  /** The largest |recorded - scored| in nats, at this position of the call's sample; null where nothing was compared. */
  worst: { difference: number; at: number; token_id: number; recorded: number; scored: number | null } | null;
  /** Why it is not comparable. */
  reason: string | null;
};

/** Those without logprobs count as not comparable too: an audit that compared nothing has shown nothing. */
export type Audit = { compared: number; worst: number | null; calls: CallAudit[] };

export const defaultTolerance = 1e-4;

/** Audits every call with samples. `score` runs once per path of the tree, with all of its tokens. */
export async function auditTrajectory(trajectory: Trajectory, score: Score, options: AuditOptions): Promise<Audit> {
  const images = imagesOf(trajectory);
  const calls = new Map(trajectory.calls.map((call) => [call.call_id, open(call, trajectory, { ...options, images })]));
  const isWanted = (node: TreeNode): boolean => {
    const audited = calls.get(node.call_id);
    return audited !== undefined && isCompared(node, audited);
  };
  for (const path of coveringPaths(trajectory, isWanted)) {
    const scored = await score(
      path.flatMap((node) => node.token_ids),
      picturesOf(path),
    );
    let start = 0;
    for (const node of path) {
      const audited = calls.get(node.call_id);
      if (audited && !audited.done.has(node.node_id) && isCompared(node, audited)) {
        audited.done.add(node.node_id);
        compare(audited, node, scored.slice(start, start + node.token_ids.length), options.tolerance);
      }
      start += node.token_ids.length;
    }
  }
  for (const { call_id, compared, scored } of calls.values()) if (compared > 0) options.onScored?.(call_id, scored);
  const audits = [...calls.values()].filter((call) => call.sampled).map(close);
  const differences = audits.flatMap(({ worst }) => (worst ? [worst.difference] : []));
  return {
    compared: audits.reduce((sum, call) => sum + call.compared, 0),
    worst: differences.length === 0 ? null : differences.reduce((one, other) => Math.max(one, other)),
    calls: audits,
  };
}

type Audited = Omit<CallAudit, "status"> & {
  sampled: boolean;
  /** Nodes that were compared: a node stands on many paths. */
  done: Set<string>;
  /** Sampled node -> number of the call's sampled tokens before it. */
  offsets: Map<string, number>;
  /** By position in the call's sample. */
  scored: (number | null)[];
};

function open(call: CallRecord, trajectory: Trajectory, options: AuditScope): Audited {
  const nodes = trajectory.nodes.filter((node) => node.call_id === call.call_id && node.kind === "sampled");
  let sampled = 0;
  const offsets = new Map<string, number>();
  for (const { node_id, token_ids } of nodes) {
    offsets.set(node_id, sampled);
    sampled += token_ids.length;
  }
  return {
    call_id: call.call_id,
    ordinal: call.ordinal,
    compared: 0,
    wrong: 0,
    worst: null,
    reason: whyNotComparable(call, nodes, options),
    sampled: (call.sampled_length ?? 0) > 0 || nodes.length > 0,
    done: new Set(),
    offsets,
    scored: new Array<number | null>(sampled).fill(null),
  };
}

function close({ sampled: _, done: __, offsets: ___, scored: ____, ...call }: Audited): CallAudit {
  const reason = call.reason ?? (call.compared === 0 ? "no_logprob" : null);
  return { ...call, reason, status: reason !== null ? "not_comparable" : call.wrong > 0 ? "mismatch" : "ok" };
}

/** `images`: ids of the messages that show one. */
type AuditScope = Pick<AuditOptions, "policyVersion" | "readsImages"> & { images: ReadonlySet<string> };

/** Why a call's recorded logprobs are not those of the plain distribution over the tree's context; null: they are. */
export function whyNotComparable(
  call: CallRecord,
  nodes: TreeNode[],
  { policyVersion, images, readsImages = false }: AuditScope,
): string | null {
  const { kind, grammar, grammar_logprobs } = call.logprob_semantics;
  if (nodes.length === 0) return "no_token_ids";
  for (const reason of ["misaligned", "planted_placeholder"] as const) if (nodes.some((node) => node.reason === reason)) return reason;
  if (nodes.every((node) => (node.logprobs ?? []).every((one) => one === null))) return "no_logprob";
  // A server that is given the ids alone samples on another context, and says nothing.
  if (!(readsImages && call.media) && call.input.some((id) => images.has(id))) return "images";
  // Where they were seen to be those before the mask they are the plain distribution's, though not all that was sampled is.
  if (grammar && !(kind === "raw" && grammar_logprobs === "unmasked")) return "sampled_under_grammar";
  if (kind !== "raw" && !isPlain(call.sampling)) return kind === null ? "logprob_kind_unknown" : "processed_sampling";
  if (policyVersion !== undefined && nodes.some((node) => node.policy_version !== policyVersion)) return "other_policy_version";
  return null;
}

/**
 * True if the sample came straight from the softmax at temperature 1. As in training, the call must state its temperature, and any
 * other missing parameter counts as none. If the server has a default cut, the recorded logprobs are not the trainer's, and differ here.
 */
function isPlain(sampling: Sampling): boolean {
  const { temperature, top_p, top_k, min_p } = sampling;
  const isUncut = (top_p ?? 1) === 1 && (top_k === undefined || top_k === null || Number(top_k) <= 0) && (min_p ?? 0) === 0;
  const isUnpenalised = ["presence_penalty", "frequency_penalty"].every((name) => (sampling[name] ?? 0) === 0);
  const isUnbiased = (sampling.repetition_penalty ?? 1) === 1 && !isBent(sampling);
  return temperature === 1 && isUncut && isUnpenalised && isUnbiased;
}

function isCompared(node: TreeNode, audited: Audited): boolean {
  return node.kind === "sampled" && audited.reason === null && node.logprobs !== null;
}

function compare(audited: Audited, node: TreeNode, scored: (number | null)[], tolerance: number): void {
  const from = audited.offsets.get(node.node_id) ?? 0;
  for (const [index, token_id] of node.token_ids.entries()) {
    const recorded = node.logprobs?.[index] ?? null;
    if (recorded === null) continue;
    const again = isLogprob(scored[index]) ? scored[index] : null;
    // The first token of all has no context to score it in, which a sampled one never lacks: a difference like any other.
    const difference = again === null ? Number.POSITIVE_INFINITY : Math.abs(recorded - again);
    audited.compared++;
    audited.scored[from + index] = again;
    if (!(difference <= tolerance)) audited.wrong++;
    if (audited.worst === null || difference > audited.worst.difference)
      audited.worst = { difference, at: from + index, token_id, recorded, scored: again };
  }
}
