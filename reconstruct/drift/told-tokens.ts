/** What a trainer's file says of each token of a trajectory, and why a call's numbers cannot be held against the record. */
import type { CallRecord, Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import { whyNotComparable } from "../audit.ts";
import { imagesOf } from "../rows/images-of.ts";
import type { TrainerLogprobs } from "./trainer-logprobs.ts";

export type ToldTokens = {
  /** One for each token of the node. */
  logprobs: (number | null)[];
  /** Why the call's recorded logprobs and these are not of the same distribution; null: they are. */
  not_comparable: string | null;
};

/** Answers for sampled nodes; null: the file says nothing of the node's call. */
export function toldTokens(trajectory: Trajectory, given: ReadonlyMap<string, TrainerLogprobs>): (node: TreeNode) => ToldTokens | null {
  const images = imagesOf(trajectory);
  const calls = new Map(trajectory.calls.map((call) => [call.call_id, call]));
  const sampled = Map.groupBy(
    trajectory.nodes.filter(({ kind }) => kind === "sampled"),
    ({ call_id }) => call_id,
  );
  return (node) => {
    const [call, told, nodes = []] = [calls.get(node.call_id), given.get(node.call_id), sampled.get(node.call_id)];
    if (call === undefined || told === undefined || node.kind !== "sampled") return null;
    const from = nodes.slice(0, nodes.indexOf(node)).reduce((sum, { token_ids }) => sum + token_ids.length, 0);
    const logprobs = node.token_ids.map((_, at) => told.logprobs[from + at] ?? null);
    return { logprobs, not_comparable: whyNotHeld(call, nodes, told, images) };
  };
}

/** `nodes`: those that the call sampled. `images`: ids of the messages that show one. */
export function whyNotHeld(call: CallRecord, nodes: TreeNode[], told: TrainerLogprobs, images: ReadonlySet<string>): string | null {
  const length = nodes.reduce((sum, { token_ids }) => sum + token_ids.length, 0);
  return (
    whyNotComparable(call, nodes, { images, readsImages: true }) ?? (told.logprobs.length > length ? "more_logprobs_than_tokens" : null)
  );
}
