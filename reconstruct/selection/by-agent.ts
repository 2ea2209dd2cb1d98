/**
 * Rows of one agent each, for trainers that give every agent its own advantage. Another agent's earlier turns (a sub-agent
 * may inherit its parent's history) are context here, and trained in that agent's own rows.
 */
import type { TreeIndex } from "../tree/tree-index.ts";
import type { Path, Selection } from "./selection.ts";
import { strictPaths } from "./strict.ts";

export const byAgent: Selection = {
  name: "by-agent",
  title: "the strict rows of each agent by itself: a row trains only what its own agent sampled",
  paths: (tree) => {
    const agents = [...new Set(tree.calls.map((call) => call.agent))];
    return agents.flatMap((agent) => pathsOfAgent(tree, agent));
  },
};

/** Every trace with turns of this agent; a trace without any gives no row. */
export function pathsOfAgent(tree: TreeIndex, agent: string): Path[] {
  const trains: Path["trains"] = (node) => tree.agentOf(node) === agent;
  return strictPaths(tree).map((path) => ({ ...path, agent, trains, scope: agent }));
}
