/** The default: every token of a row stands where the engine had it, so each logprob belongs to the row's own context. */

import type { TreeIndex } from "../tree/tree-index.ts";
import type { Path, Selection } from "./selection.ts";
import { wholeNode } from "./selection.ts";

export const strict: Selection = {
  name: "strict",
  title: "a row for each path of the tree that ends in a sample; every context is exactly what the engine saw",
  paths: strictPaths,
};

export function strictPaths(tree: TreeIndex): Path[] {
  return tree.traces.map(({ trace_id, agent, leaf_node_id }) => ({
    trace_id,
    agent,
    pieces: tree.path(leaf_node_id).map(wholeNode),
    trains: () => true,
    scope: "",
    cut: false,
  }));
}
