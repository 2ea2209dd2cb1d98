/** Reading the tree of a trajectory: the way from the root to a node. */
import { AlidadeError } from "../../base/errors.ts";
import type { Trajectory, TreeNode } from "../../base/schema/trajectory.ts";

export class TokenPaths {
  readonly #nodes: Map<string, TreeNode>;

  constructor(trajectory: Pick<Trajectory, "nodes">) {
    this.#nodes = new Map(trajectory.nodes.map((node) => [node.node_id, node]));
  }

  /** The nodes from the root to `nodeId`, both included. */
  nodes(nodeId: string): TreeNode[] {
    const path: TreeNode[] = [];
    for (let id: string | null = nodeId; id !== null; ) {
      const node = this.#nodes.get(id);
      if (node === undefined) throw new AlidadeError("request_invalid", `The trajectory names the node ${id}, which it does not have.`);
      // A path cannot be longer than the tree; a file that says so has a loop.
      if (path.length >= this.#nodes.size)
        throw new AlidadeError("request_invalid", `The trajectory's nodes form a loop at ${id}, so it is no tree.`);
      path.push(node);
      id = node.parent_id;
    }
    return path.reverse();
  }

  /** All token ids from the root to the end of `nodeId`. */
  tokens(nodeId: string): number[] {
    return this.nodes(nodeId).flatMap((node) => node.token_ids);
  }
}
