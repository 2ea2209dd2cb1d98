/** The token tree as records: nodes in depth-first order, a parent always before its children, and the traces. */

import type { RecordedReason } from "../../base/schema/reasons/untrained.ts";
import type { Trace, TreeNode } from "../../base/schema/trajectory.ts";
import { findMisalignment } from "../../base/tokens/alignment.ts";
import type { CallHistory } from "../log/call-history.ts";
import { policyVersionAt } from "../log/policy-of.ts";
import type { MarkedPads } from "./picture-tokens.ts";
import type { Branch, TokenTree } from "./token-tree.ts";

export type Nodes = { nodes: TreeNode[]; traces: Trace[]; idOf: Map<Branch, string> };

/** By call: why its token at a position of the sample is not trained; null: nothing forbids it. */
export type Exclusions = Map<string, (position: number) => RecordedReason | null>;

export function toNodes(tree: TokenTree, exclusions: Exclusions, pictures: MarkedPads): Nodes {
  const nodes: TreeNode[] = [];
  const idOf = new Map<Branch, string>();
  const samples = new SampleReader();
  const leaves: { branch: Branch; node_id: string }[] = [];
  // A stack of branches instead of recursion: a long session is a deep tree.
  const stack: { branch: Branch; parent_id: string | null; afterSample: boolean }[] = [];
  const push = (branch: Branch, parent_id: string | null, afterSample: boolean) => {
    for (const child of inOrder(branch).reverse()) stack.push({ branch: child, parent_id, afterSample });
  };
  for (const root of [tree.root, ...tree.otherRoots].reverse()) push(root, null, false);
  const hasSampleBelow = samplesBelow(tree);
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { branch, parent_id, afterSample } = next;
    const node_id = `n${nodes.length}`;
    idOf.set(branch, node_id);
    nodes.push(
      branch.sampled
        ? samples.node(branch, node_id, parent_id, exclusions)
        : contextNode(branch, node_id, { parent_id, afterSample, pictures }),
    );
    if (branch.sampled && !hasSampleBelow.has(branch)) leaves.push({ branch, node_id });
    push(branch, node_id, afterSample || branch.sampled);
  }
  return { nodes, idOf, traces: toTraces(leaves) };
}

/** Children in the order in which their calls were begun. */
function inOrder(branch: Branch): Branch[] {
  const children = [...branch.children.values(), ...branch.samples];
  return children.sort((a, b) => a.call.rank - b.call.rank || Number(b.sampled) - Number(a.sampled));
}

/** The branches that have a sample somewhere below them. Every ancestor is visited once. */
function samplesBelow(tree: TokenTree): Set<Branch> {
  const above = new Set<Branch>();
  for (const end of tree.sampleEnd.values()) {
    // The lower half of a split sample is below its upper half, so the walk starts at the end.
    for (let branch = end.parent; branch !== null && !above.has(branch); branch = branch.parent) above.add(branch);
  }
  return above;
}

function tokensOf(branch: Branch): number[] {
  const length = branch.depth - (branch.parent?.depth ?? 0);
  return Array.prototype.slice.call(branch.tokens, branch.start, branch.start + length) as number[];
}

type ContextPlace = { parent_id: string | null; afterSample: boolean; pictures: MarkedPads };

function contextNode(branch: Branch, node_id: string, { parent_id, afterSample, pictures }: ContextPlace): TreeNode {
  const { token_ids, media } = pictures.read(tokensOf(branch));
  const kind = afterSample ? ("observation" as const) : ("prompt" as const);
  return {
    node_id,
    parent_id,
    call_id: branch.call.call_id,
    kind,
    token_ids,
    ...(media.length > 0 && { media }),
    logprobs: null,
    policy_version: null,
    trainable: false,
    reason: null,
  };
}

/** Reads a call's logprobs once, however often its sample was split. */
class SampleReader {
  readonly #forced = new Map<CallHistory, boolean[] | null>();
  readonly #logprobs = new Map<CallHistory, (number | null)[] | null>();

  node(branch: Branch, node_id: string, parent_id: string | null, exclusions: Exclusions): TreeNode {
    const { call } = branch;
    const token_ids = tokensOf(branch);
    const reason = exclusions.get(call.call_id)?.(branch.start) ?? null;
    const logprobs = this.#logprobsOf(call)?.slice(branch.start, branch.start + token_ids.length) ?? null;
    const forced = this.#forcedOf(call)?.slice(branch.start, branch.start + token_ids.length);
    const node: TreeNode = {
      node_id,
      parent_id,
      call_id: call.call_id,
      kind: "sampled",
      token_ids,
      logprobs,
      policy_version: policyVersionAt(call, branch.start),
      trainable: reason === null,
      reason,
    };
    if (forced !== undefined) node.forced = forced;
    return node;
  }

  /** Logprobs that do not belong to these ids are not passed on as if they did. */
  #logprobsOf(call: CallHistory): (number | null)[] | null {
    let logprobs = this.#logprobs.get(call);
    if (logprobs === undefined) {
      const { sampled_ids, logprobs: recorded } = call.finished ?? { sampled_ids: null, logprobs: null };
      logprobs = recorded !== null && findMisalignment(sampled_ids ?? [], recorded) === null ? recorded : null;
      this.#logprobs.set(call, logprobs);
    }
    return logprobs;
  }

  #forcedOf(call: CallHistory): boolean[] | null {
    let forced = this.#forced.get(call);
    if (forced === undefined) {
      forced = this.#logprobsOf(call) === null ? null : forcedTokens(call);
      this.#forced.set(call, forced);
    }
    return forced;
  }
}

/** One trace for each sample that no other follows, in the order in which the calls were begun. */
function toTraces(leaves: { branch: Branch; node_id: string }[]): Trace[] {
  leaves.sort((a, b) => a.branch.call.rank - b.branch.call.rank);
  return leaves.map(({ branch, node_id }, index) => ({ trace_id: `t${index}`, leaf_node_id: node_id, agent: branch.call.begun.agent }));
}

/** Under a grammar a logprob of exactly 0 means that no other token was allowed; null where there was no grammar. */
function forcedTokens({ finished }: CallHistory): boolean[] | null {
  if (!finished?.logprob_semantics.grammar || !finished.logprobs) return null;
  return finished.logprobs.map((logprob) => logprob === 0);
}
