/** The fidelity report: what was sampled, what of it is trained and why not the rest, and where contexts part. */

import type { z } from "zod";
import { hashOf } from "../base/schema/ids.ts";
import type { CallRecord, Fidelity, Trajectory, TreeNode } from "../base/schema/trajectory.ts";
import { countBy } from "./count-by.ts";
import type { CallHistory } from "./log/call-history.ts";
import type { Lost } from "./log/damage.ts";
import { resampledTries } from "./log/uncounted.ts";
import { countOmitted } from "./omitted.ts";
import { type Accountable, countTokens, replayedIn } from "./rows/token-account.ts";
import { defaultTrainer, hasChoice, recordedReasonOf, toJudge } from "./trained/why-untrained.ts";

type FidelityReport = z.infer<typeof Fidelity>;

export type Measured = {
  histories: CallHistory[];
  /** All of it but its fidelity. */
  trajectory: Omit<Trajectory, "fidelity">;
  /** What the log holds no more. */
  lost: Lost[];
  /** Over the lists of its servers of tools; null where it has none. */
  tool_servers?: string | null;
  alidade_version: string;
};

export function measureFidelity({ histories, trajectory, lost, tool_servers = null, alidade_version }: Measured): FidelityReport {
  const { calls, nodes } = trajectory;
  return {
    calls: calls.length,
    ...countFidelity({ ...trajectory, fidelity: { damaged: lost } }),
    matches: countBy(calls, (call) => call.match),
    causes: countBy(calls, (call) => call.cause),
    outcomes: countBy(calls, (call) => call.outcome),
    omitted: countOmitted(calls),
    continuity: countBy(calls, ({ continuity }) => (continuity?.mode === "rendered" ? continuity.cause : (continuity?.mode ?? null))),
    resampled: histories.reduce((sum, history) => sum + resampledTries(history), 0),
    damaged: lost,
    policy_versions: policyVersions(calls),
    policy_checks: countBy(calls, ({ policy }) => policy.check),
    row_inflation: rowInflation(nodes),
    fingerprints: { ...fingerprintsOf(calls, nodes, alidade_version), ...(tool_servers !== null && { tool_servers }) },
  };
}

type TokenCounts = Pick<
  FidelityReport,
  "sampled_tokens" | "replayed_tokens" | "trainable_tokens" | "excluded" | "by_class" | "uncounted" | "logprob_coverage"
>;

/** What a trainer that states nothing of itself could train: a temperature of 1, and no grammar. */
export function countFidelity(trajectory: Accountable & Pick<Trajectory, "messages" | "in_loss">): TokenCounts {
  const { sampled, replayed, trained, excluded, by_class, uncounted } = countTokens(
    trajectory,
    toJudge(trajectory, defaultTrainer, trajectory),
  );
  const isReplayed = replayedIn(trajectory.calls);
  let withLogprob = 0;
  for (const { logprobs, call_id } of trajectory.nodes)
    if (!isReplayed.has(call_id)) withLogprob += logprobs?.filter((logprob) => logprob !== null).length ?? 0;
  return {
    sampled_tokens: sampled,
    ...(replayed > 0 && { replayed_tokens: replayed }),
    trainable_tokens: trained,
    excluded,
    by_class,
    uncounted,
    logprob_coverage: sampled === 0 ? null : withLogprob / sampled,
  };
}

function policyVersions(calls: CallRecord[]): string[] {
  const versions = new Set<string>();
  for (const { policy } of calls) for (const each of [policy.start, policy.end]) if (each !== null) versions.add(each.version);
  return [...versions].sort();
}

/**
 * Tokens of the rows that a trainer would get over the tokens of their paths, each counted once: 1 where nothing
 * branches. A row ends at a trained node that has no trained node below it (see select-rows.ts). What the record allows is
 * taken as trained: whether a trainer takes calls under a grammar changes nothing about branches.
 */
export function rowInflation(nodes: TreeNode[]): number | null {
  const depth = new Map<string, number>();
  for (const node of nodes) depth.set(node.node_id, depthAbove(node, depth) + node.token_ids.length);
  let rows = 0;
  let tree = 0;
  const needed = new Set<string>();
  // Nodes stand parent first, so backwards every node comes after all that is below it.
  for (const node of nodes.toReversed()) {
    const isEnd = recordedReasonOf(node) === null && hasChoice(node) && !needed.has(node.node_id);
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

/** Two sessions of one task with equal fingerprints had the same engine, tools and rendering of the first prompt. */
function fingerprintsOf(calls: CallRecord[], nodes: TreeNode[], alidade_version: string): Record<string, string> {
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
