/**
 * Sampled tokens that are not trained for what an agent itself can bring about: it brings a call to fail, says that a call
 * is a side call, or looks at images; outside a sandbox also: it hangs up before its answer, or uses a part of it. A grammar
 * is not among them: in a sandbox only the operator allows one.
 */
import type { Trajectory } from "../../schema/trajectory.ts";
import { imagesOf } from "../rows/images-of.ts";

const reasons = ["undelivered", "failed", "auxiliary"] as const;

/** Reason -> tokens. Those after an image are trained by no format of rows, for they do not hold it. */
export function untrainedByAgent(trajectory: Pick<Trajectory, "calls" | "fidelity" | "messages" | "nodes">): Record<string, number> {
  const { excluded } = trajectory.fidelity;
  const counts = { ...Object.fromEntries(reasons.map((reason) => [reason, excluded[reason] ?? 0])), images: tokensAfterImages(trajectory) };
  return Object.fromEntries(Object.entries(counts).filter(([, tokens]) => tokens > 0));
}

function tokensAfterImages({ calls, messages, nodes }: Pick<Trajectory, "calls" | "messages" | "nodes">): number {
  const images = imagesOf({ messages });
  if (images.size === 0) return 0;
  const sees = new Set(calls.filter(({ input }) => input.some((id) => images.has(id))).map(({ call_id }) => call_id));
  const lost = nodes.filter(({ kind, trainable, call_id }) => kind === "sampled" && trainable && sees.has(call_id));
  return lost.reduce((sum, { token_ids }) => sum + token_ids.length, 0);
}
