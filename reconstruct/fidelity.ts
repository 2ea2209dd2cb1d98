/** The fidelity report: what was sampled, what of it is trained and why not the rest, and where contexts part. */

import type { z } from "zod";
import { hashOf } from "../schema/ids.ts";
import type { CallRecord, Fidelity, TreeNode } from "../schema/trajectory.ts";
import type { Lost } from "./log/damage.ts";
import type { CallHistory } from "./log/read-log.ts";

type FidelityReport = z.infer<typeof Fidelity>;

export type Measured = {
  histories: CallHistory[];
  calls: CallRecord[];
  nodes: TreeNode[];
  /** Call id -> reason, for calls without a sample in the tree. */
  exclusions: Map<string, string | null>;
  /** What the log holds no more. */
  lost: Lost[];
  alidade_version: string;
};

export function measureFidelity(measured: Measured): FidelityReport {
  const tokens = countTokens(measured);
  return {
    calls: measured.calls.length,
    ...tokens,
    matches: countBy(measured.calls, (call) => call.match),
    causes: countBy(measured.calls, (call) => call.cause),
    outcomes: countBy(measured.calls, (call) => call.outcome),
    uncounted: countBy(measured.calls, (call) => call.uncounted),
    continuity: countBy(measured.calls, ({ continuity }) =>
      continuity?.mode === "rendered" ? continuity.cause : (continuity?.mode ?? null),
    ),
    resampled: countResampled(measured.histories),
    damaged: measured.lost,
    policy_versions: policyVersions(measured.calls),
    policy_checks: countBy(measured.calls, ({ policy }) => policy.check),
    row_inflation: rowInflation(measured.nodes),
    fingerprints: fingerprintsOf(measured),
  };
}

type TokenCounts = Pick<FidelityReport, "sampled_tokens" | "trainable_tokens" | "excluded" | "by_class" | "logprob_coverage">;

/** Every sampled token once: in the tree by its node; outside it (no prompt ids, or text only) by what the engine counted. */
function countTokens({ nodes, calls, exclusions, lost }: Measured): TokenCounts {
  const counts = { sampled_tokens: 0, trainable_tokens: 0, excluded: {} as Record<string, number>, by_class: {} as Record<string, number> };
  let withLogprob = 0;
  const classes = new Map(calls.map((call) => [call.call_id, call.request_class]));
  const exclude = (reason: string, tokens: number, callId: string | null) => {
    if (tokens === 0) return;
    counts.excluded[reason] = (counts.excluded[reason] ?? 0) + tokens;
    const kind = reason === "auxiliary" && classes.get(callId ?? "");
    if (kind) counts.by_class[kind] = (counts.by_class[kind] ?? 0) + tokens;
  };
  const inTree = new Set<string>();
  for (const node of nodes) {
    if (node.kind !== "sampled") continue;
    inTree.add(node.call_id);
    counts.sampled_tokens += node.token_ids.length;
    withLogprob += node.logprobs?.filter((logprob) => logprob !== null).length ?? 0;
    const forced = node.trainable ? (node.forced?.filter(Boolean).length ?? 0) : 0;
    if (node.trainable) counts.trainable_tokens += node.token_ids.length - forced;
    exclude("forced", forced, node.call_id);
    if (!node.trainable) exclude(node.reason ?? "unknown", node.token_ids.length, node.call_id);
  }
  for (const call of calls) {
    if (inTree.has(call.call_id)) continue;
    const sampled = call.sampled_length ?? call.usage?.sampled_tokens ?? 0;
    counts.sampled_tokens += sampled;
    exclude(exclusions.get(call.call_id) ?? "no_token_ids", sampled, call.call_id);
  }
  for (const { sampled_tokens } of lost) {
    counts.sampled_tokens += sampled_tokens ?? 0;
    exclude("damaged", sampled_tokens ?? 0, null);
  }
  return { ...counts, logprob_coverage: counts.sampled_tokens === 0 ? null : withLogprob / counts.sampled_tokens };
}

function countBy(calls: CallRecord[], key: (call: CallRecord) => string | null): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const call of calls) {
    const name = key(call);
    if (name !== null) counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Tries that had begun to sample and were followed by another one: a silent resampling would bias the policy. */
function countResampled(histories: CallHistory[]): number {
  let resampled = 0;
  for (const { tries } of histories) for (const each of tries.slice(0, -1)) if (each.first_token !== null) resampled++;
  return resampled;
}

function policyVersions(calls: CallRecord[]): string[] {
  const versions = new Set<string>();
  for (const { policy } of calls) for (const each of [policy.start, policy.end]) if (each !== null) versions.add(each.version);
  return [...versions].sort();
}

/**
 * Tokens of the rows that a trainer would get over the tokens of their paths, each counted once: 1 where nothing
 * branches. A row ends at a trained node that has no trained node below it (see select-rows.ts).
 */
export function rowInflation(nodes: TreeNode[]): number | null {
  const depth = new Map<string, number>();
  for (const node of nodes) depth.set(node.node_id, depthAbove(node, depth) + node.token_ids.length);
  let rows = 0;
  let tree = 0;
  const needed = new Set<string>();
  // Nodes stand parent first, so backwards every node comes after all that is below it.
  for (const node of nodes.toReversed()) {
    const isEnd = isTrained(node) && !needed.has(node.node_id);
    if (isEnd) rows += depth.get(node.node_id) ?? 0;
    if (!isEnd && !needed.has(node.node_id)) continue;
    tree += node.token_ids.length;
    if (node.parent_id !== null) needed.add(node.parent_id);
  }
  return tree === 0 ? null : rows / tree;
}

function depthAbove(node: TreeNode, depth: Map<string, number>): number {
  return node.parent_id === null ? 0 : (depth.get(node.parent_id) ?? 0);
}

function isTrained(node: TreeNode): boolean {
  return node.trainable && (node.forced === undefined || node.forced.includes(false));
}

/** Two sessions of one task with equal fingerprints had the same engine, tools and rendering of the first prompt. */
function fingerprintsOf({ calls, nodes, alidade_version }: Measured): Record<string, string> {
  const first = calls.find((call) => call.request_class === "main") ?? calls[0];
  const fingerprints: Record<string, string> = {
    alidade: alidade_version,
    engine: hashOf([...new Set(calls.map((call) => `${call.engine ?? ""} ${call.engine_model ?? ""}`))].sort()),
    tools: hashOf([...new Set(calls.map((call) => call.tools_hash ?? ""))].sort()),
  };
  const prompt = first && promptOf(first, nodes);
  if (prompt) fingerprints.first_prompt = hashOf(prompt);
  return fingerprints;
}

function promptOf(call: CallRecord, nodes: TreeNode[]): number[] | null {
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const path: number[][] = [];
  for (let id = call.prompt_node_id; id !== null; id = byId.get(id)?.parent_id ?? null) path.push(byId.get(id)?.token_ids ?? []);
  return path.length === 0 ? null : path.reverse().flat();
}
