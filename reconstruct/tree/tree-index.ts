/** A trajectory's tree as selections read it: paths, calls and their samples by name. Built once, in one pass. */
import type { CallRecord, Trace, Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import { TokenPaths } from "./token-paths.ts";

export class TreeIndex {
  readonly traces: Trace[];
  readonly calls: CallRecord[];
  readonly leadAgents: string[];
  readonly #paths: TokenPaths;
  readonly #callById: Map<string, CallRecord>;
  readonly #samples = new Map<string, TreeNode[]>();

  constructor(trajectory: Trajectory) {
    this.traces = trajectory.traces;
    this.calls = trajectory.calls;
    this.leadAgents = trajectory.lead_agents;
    this.#paths = new TokenPaths(trajectory);
    this.#callById = new Map(trajectory.calls.map((call) => [call.call_id, call]));
    for (const node of trajectory.nodes) {
      if (node.kind !== "sampled") continue;
      const nodes = this.#samples.get(node.call_id);
      if (nodes === undefined) this.#samples.set(node.call_id, [node]);
      else nodes.push(node);
    }
  }

  /** From the root to this node, both included. */
  path(nodeId: string): TreeNode[] {
    return this.#paths.nodes(nodeId);
  }

  call(callId: string): CallRecord | undefined {
    return this.#callById.get(callId);
  }

  /** The nodes of what the call sampled, in order; empty where it sampled nothing that could be placed. */
  sample(callId: string): TreeNode[] {
    return this.#samples.get(callId) ?? [];
  }

  agentOf(node: TreeNode): string {
    return this.call(node.call_id)?.agent ?? "main";
  }
}
