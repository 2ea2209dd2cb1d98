/**
 * One row for a conversation that was only tokenised anew: where a prompt says the same text as its parent in other
 * tokens, the row goes on with the tokens that were sampled. The logprobs after such a joint belong to a context of
 * other tokens, so its segments say `context: same_text`: less repetition, bought with importance ratios near but not at
 * 1. Anything but the same text stays a branch.
 */
import type { CallRecord, TreeNode } from "../../base/schema/trajectory.ts";
import type { TreeIndex } from "../tree/tree-index.ts";
import type { Path, RowPiece, Selection } from "./selection.ts";
import { wholeNode } from "./selection.ts";
import { strictPaths } from "./strict.ts";

export const tolerant: Selection = {
  name: "tolerant",
  title: "as strict, but a turn that came back as the same text in other tokens does not begin a new row (flagged)",
  paths: (tree) => {
    const joints = findJoints(tree);
    const continued = new Set([...joints.values()].map((joint) => joint.parent.call_id));
    return strictPaths(tree).flatMap((path): Path[] => {
      const end = path.pieces.at(-1)?.node;
      const call = end && tree.call(end.call_id);
      if (call === undefined) return [path];
      // All of it is the beginning of the row that goes on with it.
      if (continued.has(call.call_id)) return [];
      return [{ ...path, pieces: joinedPieces(call, joints, tree) ?? path.pieces }];
    });
  },
};

/** Where a call's prompt goes on after its parent's sample: the first token of its own. */
type Joint = { parent: CallRecord; at: number; exact: boolean };

function findJoints(tree: TreeIndex): Map<string, Joint> {
  const joints = new Map<string, Joint>();
  for (const call of tree.calls) {
    const parent = call.parent_call_id === null ? undefined : tree.call(call.parent_call_id);
    if (parent === undefined || tree.sample(parent.call_id).length === 0 || call.prompt_node_id === null) continue;
    // A call that sampled nothing ends no row: what it would go on from ends one itself.
    if (tree.sample(call.call_id).length === 0) continue;
    if (call.match === "exact") joints.set(call.call_id, { parent, at: fullLength(parent), exact: true });
    else if (call.match === "same_text") {
      const at = findEndOfSameText(call, parent, tree);
      if (at !== null) joints.set(call.call_id, { parent, at, exact: false });
    }
  }
  return joints;
}

const fullLength = (call: CallRecord): number => (call.prompt_length ?? 0) + (call.sampled_length ?? 0);

/**
 * The texts are equal, so both sides end the turn at the same occurrence of its closing token. That holds for a token with
 * a fixed meaning, such as a stop token. After a stop string or a cut-off turn it is unknown.
 */
function findEndOfSameText(call: CallRecord, parent: CallRecord, tree: TreeIndex): number | null {
  const closed = parent.finish_reason === "stop" || parent.finish_reason === "tool_calls";
  if (!closed || typeof parent.stop === "string" || call.difference === null || call.prompt_node_id === null) return null;
  const from = call.difference.position;
  const end = tree.sample(parent.call_id).at(-1) as TreeNode;
  const before = tokensAfter(tree.path(end.node_id), from);
  const now = tokensAfter(tree.path(call.prompt_node_id), from);
  const close = before.at(-1);
  let left = before.filter((id) => id === close).length;
  for (const [index, id] of now.entries()) if (id === close && --left === 0) return from + index + 1;
  return null;
}

function tokensAfter(path: TreeNode[], from: number): number[] {
  return piecesAfter(path, from).flatMap(({ node, from: start }) => node.token_ids.slice(start));
}

/** The path's tokens after the first `from`. */
function piecesAfter(path: TreeNode[], from: number): RowPiece[] {
  const pieces: RowPiece[] = [];
  let depth = 0;
  for (const node of path) {
    const start = Math.max(0, from - depth);
    depth += node.token_ids.length;
    if (start < node.token_ids.length) pieces.push({ ...wholeNode(node), from: start });
  }
  return pieces;
}

/** From the call at which this conversation's tokens begin down to this one's sample; null where it joins nothing. */
function joinedPieces(last: CallRecord, joints: Map<string, Joint>, tree: TreeIndex): RowPiece[] | null {
  const chain: { call: CallRecord; joint: Joint }[] = [];
  let first = last;
  for (let joint = joints.get(last.call_id); joint !== undefined; joint = joints.get(first.call_id)) {
    chain.push({ call: first, joint });
    first = joint.parent;
  }
  if (chain.every(({ joint }) => joint.exact)) return null;
  const begin = tree.sample(first.call_id).at(-1) as TreeNode;
  const pieces = tree.path(begin.node_id).map(wholeNode);
  let context: RowPiece["context"] = "exact";
  for (const { call, joint } of chain.reverse()) {
    if (!joint.exact) context = "same_text";
    const appended = piecesAfter(tree.path(call.prompt_node_id as string), joint.at);
    pieces.push(...[...appended, ...tree.sample(call.call_id).map(wholeNode)].map((piece) => ({ ...piece, context })));
  }
  return pieces;
}
