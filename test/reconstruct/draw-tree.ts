/** A trajectory's token tree as lines for people and for tests: one line a node, indented, with its call and words. */
import type { Trajectory, TreeNode } from "../../base/schema/trajectory.ts";

/** `a` for the first call, `b` for the second …; sampled nodes show `+` (trainable) or their reason. */
export function drawTree(trajectory: Trajectory): string[] {
  const names = new Map(trajectory.calls.map((call, index) => [call.call_id, String.fromCharCode(97 + index)]));
  const depth = new Map<string, number>();
  return trajectory.nodes.map((node) => {
    const level = node.parent_id === null ? 0 : (depth.get(node.parent_id) as number) + 1;
    depth.set(node.node_id, level);
    return `${"  ".repeat(level)}${names.get(node.call_id)} ${node.kind} ${node.token_ids.length}${stateOf(node)}`;
  });
}

function stateOf(node: TreeNode): string {
  if (node.kind !== "sampled") return "";
  return ` ${node.trainable ? "+" : node.reason}`;
}

/** `a root`, `b exact a`, `c diverged b edited` … for every call. */
export function drawEdges(trajectory: Trajectory): string[] {
  const names = new Map(trajectory.calls.map((call, index) => [call.call_id, String.fromCharCode(97 + index)]));
  return trajectory.calls.map((call) => {
    const parent = call.parent_call_id === null ? "" : ` ${names.get(call.parent_call_id)}`;
    return `${names.get(call.call_id)} ${call.match}${parent}${call.cause === null ? "" : ` ${call.cause}`}`;
  });
}
