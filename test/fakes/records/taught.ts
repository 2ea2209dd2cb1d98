/** A trajectory as a teacher left it that gives every token a logprob by its id alone. */
import type { Trajectory } from "../../../base/schema/trajectory.ts";

/** The logprob of the token `id`: a fraction that float32 holds. */
export const taughtLogprob = (id: number): number => -id / 1024;

export function taught(trajectory: Trajectory): Trajectory {
  return {
    ...trajectory,
    teacher: { engine: "vllm", url: "http://127.0.0.1:8001", model: "large", weight_version: null, tokenizer: "same", scored: 1 },
    nodes: trajectory.nodes.map((node) =>
      node.kind === "sampled" ? { ...node, teacher: { logprobs: node.token_ids.map(taughtLogprob), reason: null } } : node,
    ),
  };
}
