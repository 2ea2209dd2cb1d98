/** A trajectory as a teacher left it that gives every token a logprob by its id alone. */
import type { Teacher, Trajectory } from "../../../base/schema/trajectory.ts";

export const teacher: Teacher = {
  engine: "vllm",
  url: "http://127.0.0.1:8001",
  model: "large",
  weight_version: null,
  tokenizer: "same",
  scored: 1,
};

/** The logprob of the token `id`: a fraction that float32 holds. */
export const taughtLogprob = (id: number): number => -id / 1024;

/** The likeliest tokens at the place of `id`, of which it is none. */
export const taughtTop = (id: number): { ids: number[]; logprobs: number[] } => ({ ids: [id + 1, id + 2], logprobs: [-0.25, -id / 512] });

/** `top`: it was also asked for its two likeliest tokens. */
export function taught(trajectory: Trajectory, { top = false }: { top?: boolean } = {}): Trajectory {
  return {
    ...trajectory,
    teacher: { ...teacher, ...(top && { top_k: 2 }) },
    nodes: trajectory.nodes.map((node) => (node.kind === "sampled" ? { ...node, teacher: scoreOf(node.token_ids, top) } : node)),
  };
}

function scoreOf(ids: number[], top: boolean) {
  const likeliest = ids.map(taughtTop);
  return {
    logprobs: ids.map(taughtLogprob),
    reason: null,
    ...(top && { top: { ids: likeliest.map((one) => one.ids), logprobs: likeliest.map((one) => one.logprobs) } }),
  };
}
