/** Paths of a tree for an engine that scores: each node that is asked about stands on one of them, behind its whole context. */
import type { PromptPicture } from "../../base/schema/session-log.ts";
import type { Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import { TokenPaths } from "./token-paths.ts";

/**
 * Logprob of each token after those before it (nats, temperature 1, no mask); null where there is none, as for the first. `media`:
 * the pictures among the tokens.
 */
export type Score = (tokenIds: number[], media: PromptPicture[]) => Promise<(number | null)[]>;

/** The shortest set of paths over which each wanted node stands at least once. */
export function coveringPaths(trajectory: Pick<Trajectory, "nodes">, isWanted: (node: TreeNode) => boolean): TreeNode[][] {
  const paths = new TokenPaths(trajectory);
  const wanted = trajectory.nodes.filter(isWanted);
  const parents = new Map(trajectory.nodes.map((node) => [node.node_id, node.parent_id]));
  const covered = new Set<string>();
  for (const node of wanted) for (let id = node.parent_id; id !== null && !covered.has(id); id = parents.get(id) ?? null) covered.add(id);
  return wanted.filter((node) => !covered.has(node.node_id)).map((node) => paths.nodes(node.node_id));
}

/** The pictures of a path; `start` counts from its first token. */
export function picturesOf(path: readonly TreeNode[]): PromptPicture[] {
  let before = 0;
  return path.flatMap(({ media = [], token_ids }) => {
    const placed = media.map((picture) => ({ ...picture, start: before + picture.start }));
    before += token_ids.length;
    return placed;
  });
}
