/** A trajectory's logprobs against vLLM's own: each trace is put through it as one prompt, and nothing is sampled. */
import assert from "node:assert/strict";
import type { Trajectory, TreeNode } from "../../schema/trajectory.ts";
import type { Vllm } from "../interop/vllm/start.ts";
import { score } from "./vllm-samples.ts";

/** The greatest difference between a recorded logprob and the scored one, in nats, over every sampled token. */
export async function scoreTraces(vllm: Vllm, trajectory: Trajectory, signal: AbortSignal): Promise<{ worst: number; tokens: number }> {
  const nodes = new Map(trajectory.nodes.map((node) => [node.node_id, node]));
  const scored = new Set<string>();
  const result = { worst: 0, tokens: 0 };
  for (const { leaf_node_id } of trajectory.traces) {
    const path = pathTo(leaf_node_id, nodes);
    const expected = await score(
      vllm,
      path.flatMap((node) => node.token_ids),
      signal,
    );
    let end = 0;
    for (const node of path) {
      const start = end;
      end += node.token_ids.length;
      // Shared by several traces, it is the same token in the same context.
      if (node.kind !== "sampled" || scored.has(node.node_id)) continue;
      scored.add(node.node_id);
      for (const [index, id] of node.token_ids.entries()) {
        const logprob = expected[start + index]?.[String(id)]?.logprob;
        const recorded = node.logprobs?.[index];
        assert.ok(typeof logprob === "number" && typeof recorded === "number", `token ${start + index} of ${leaf_node_id}`);
        result.worst = Math.max(result.worst, Math.abs(logprob - recorded));
        result.tokens++;
      }
    }
  }
  return result;
}

function pathTo(leaf: string, nodes: Map<string, TreeNode>): TreeNode[] {
  const path: TreeNode[] = [];
  for (let node = nodes.get(leaf); node !== undefined; node = nodes.get(node.parent_id ?? "")) path.unshift(node);
  return path;
}
