/** The negative control: a trajectory whose logprobs all stand one sampled token late, and that is right otherwise. */
import type { Trajectory } from "../../../base/schema/trajectory.ts";

export function shiftLogprobs(trajectory: Trajectory): Trajectory {
  const sampled = trajectory.nodes.filter((node) => node.kind === "sampled");
  const all = sampled.flatMap((node) => node.logprobs ?? []);
  const late = [...all.slice(-1), ...all.slice(0, -1)];
  let at = 0;
  const shifted = new Map(
    sampled.flatMap(({ node_id, logprobs }) => {
      if (logprobs === null) return [];
      at += logprobs.length;
      return [[node_id, late.slice(at - logprobs.length, at)] as const];
    }),
  );
  return {
    ...trajectory,
    nodes: trajectory.nodes.map((node) => ({ ...node, logprobs: shifted.get(node.node_id) ?? node.logprobs })),
  };
}
