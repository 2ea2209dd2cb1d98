/** Adds the experts of each token to a trajectory: `expertsAt` of the token's id and of its place on its path. */
import { hash } from "node:crypto";
import type { Trajectory, TreeNode } from "../../../base/schema/trajectory.ts";
import { bytesOf, expertsAt } from "../engines/npy.ts";

/** Puts the bytes into `files`, by their hash. A last sampled token has no entry. */
export function routed(trajectory: Trajectory, files: Map<string, Buffer>): Trajectory {
  const byId = new Map(trajectory.nodes.map((node) => [node.node_id, node]));
  const parents = new Set(trajectory.nodes.map(({ parent_id }) => parent_id));
  const startOf = ({ parent_id }: TreeNode): number => {
    const parent = byId.get(parent_id ?? "");
    return parent ? startOf(parent) + parent.token_ids.length : 0;
  };
  const blobs = trajectory.nodes.flatMap((node) => {
    const count = node.token_ids.length - (parents.has(node.node_id) ? 0 : 1);
    if (count === 0) return [];
    const rows = node.token_ids.slice(0, count).map((id, at) => expertsAt(id, startOf(node) + at));
    const bytes = bytesOf(rows.flat(2));
    const ref = hash("sha256", bytes);
    files.set(ref, bytes);
    const span: [number, number] = [0, count];
    return [{ name: "routed_experts", dtype: "uint8", shape: [count, 2, 2], node_id: node.node_id, span, row: 0, ref }];
  });
  return { ...trajectory, blobs };
}
