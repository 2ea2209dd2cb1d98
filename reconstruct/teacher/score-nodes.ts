/**
 * Asks another model, the teacher, how likely the sampled tokens are. The teacher gets each token in the context that the tree
 * holds (teacher forcing). Recorded tokens, masks and logprobs do not change. The score is a field of the node (`teacher`). A token
 * without a score has null, and the node has the reason.
 */
import type { CallRecord, Teacher, TeacherReason, TeacherScore, Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import { isLogprob } from "../../base/tokens/alignment.ts";
import { imagesOf } from "../rows/images-of.ts";
import { coveringPaths, picturesOf, type Score } from "../tree/covering-paths.ts";

/** As an engine scores: logprobs as `Score` gives them, and at each place the likeliest tokens where they were asked for. */
export type TeacherAnswer = { logprobs: (number | null)[]; top?: { ids: number[]; logprobs: number[] }[] };

export type AskTeacher = {
  score: (...asked: Parameters<Score>) => Promise<TeacherAnswer>;
  /** `score` is given the pictures. */
  readsImages: boolean;
  /** Tokens that it can score at once; null: unknown. */
  maxTokens: number | null;
};

/** Returns a score for each sampled node, by its id. Calls `score` once for each path, with all tokens that fit. */
export async function scoreNodes(
  trajectory: Trajectory,
  { score, readsImages, maxTokens }: AskTeacher,
): Promise<Map<string, TeacherScore>> {
  const scores = new Map<string, TeacherScore>();
  const reasons = reasonsOf(trajectory, readsImages);
  for (const node of trajectory.nodes) {
    const reason = reasons.get(node.node_id);
    if (reason !== undefined && reason !== null) scores.set(node.node_id, unscored(node, reason));
  }
  for (const path of coveringPaths(trajectory, (node) => reasons.get(node.node_id) === null)) {
    const ids = path.flatMap((node) => node.token_ids);
    const media = picturesOf(path);
    const length = fittingLength(ids.length, media, maxTokens);
    const scored = await score(
      ids.slice(0, length),
      media.filter(({ start }) => start < length),
    );
    let start = 0;
    for (const node of path) {
      const end = start + node.token_ids.length;
      if (!scores.has(node.node_id) && reasons.has(node.node_id))
        scores.set(node.node_id, scoreOf(node, scored, { start, cut: end > length }));
      start = end;
    }
  }
  return scores;
}

/**
 * Gives every sampled node nulls, by its id, if the teacher gave no score. A node that it could not score anyway keeps its own reason.
 */
export function unscoredNodes(trajectory: Trajectory, reason: TeacherReason): Map<string, TeacherScore> {
  const own = reasonsOf(trajectory, true);
  const sampled = trajectory.nodes.filter(({ kind }) => kind === "sampled");
  return new Map(sampled.map((node) => [node.node_id, unscored(node, own.get(node.node_id) ?? reason)]));
}

/** A copy with the scores beside its tokens. Scores of an earlier teacher are gone from it. */
export function withTeacher(trajectory: Trajectory, teacher: Teacher, scores: ReadonlyMap<string, TeacherScore>): Trajectory {
  const nodes = trajectory.nodes.map(({ teacher: _earlier, ...node }): TreeNode => {
    const score = scores.get(node.node_id);
    return score === undefined ? node : { ...node, teacher: score };
  });
  return { ...trajectory, teacher, nodes };
}

/** Says why no teacher scores the tokens of this call; null: a teacher does. */
function whyNotScorable(
  call: Pick<CallRecord, "other_policy" | "input" | "media">,
  // `nodes`: sampled by the call. `images`: ids of the messages that have a picture.
  { nodes, images, readsImages }: { nodes: readonly TreeNode[]; images: ReadonlySet<string>; readsImages: boolean },
): TeacherReason | null {
  if (call.other_policy) return "other_policy";
  for (const reason of ["misaligned", "planted_placeholder"] as const) if (nodes.some((node) => node.reason === reason)) return reason;
  // A server that gets ids without their pictures scores another context, and does not say so.
  return !(readsImages && call.media) && call.input.some((id) => images.has(id)) ? "images" : null;
}

/** Gives each sampled node its reason; null: it is to be scored. */
function reasonsOf(trajectory: Trajectory, readsImages: boolean): Map<string, TeacherReason | null> {
  const images = imagesOf(trajectory);
  const sampled = Map.groupBy(
    trajectory.nodes.filter((node) => node.kind === "sampled"),
    (node) => node.call_id,
  );
  return new Map(
    trajectory.calls.flatMap((call) => {
      const nodes = sampled.get(call.call_id) ?? [];
      const reason = whyNotScorable(call, { nodes, images, readsImages });
      return nodes.map((node) => [node.node_id, reason] as const);
    }),
  );
}

/** A picture is scored whole or not at all. */
function fittingLength(length: number, media: ReturnType<typeof picturesOf>, maxTokens: number | null): number {
  if (maxTokens === null || length <= maxTokens) return length;
  const cut = media.find(({ start, length: pads }) => start < maxTokens && start + pads > maxTokens);
  return cut?.start ?? maxTokens;
}

/** `start`: the place of its first token on the path. `cut`: some of its tokens did not fit. */
function scoreOf(
  { token_ids }: TreeNode,
  { logprobs: given, top }: TeacherAnswer,
  { start, cut }: { start: number; cut: boolean },
): TeacherScore {
  const logprobs = token_ids.map((_, at) => {
    const logprob = given[start + at];
    return isLogprob(logprob) ? logprob : null;
  });
  const likeliest = top && token_ids.map((_, at) => (logprobs[at] === null ? undefined : top[start + at]));
  return {
    logprobs,
    reason: logprobs.includes(null) ? (cut ? "over_context" : "no_logprob") : null,
    ...(likeliest && { top: { ids: likeliest.map((one) => one?.ids ?? []), logprobs: likeliest.map((one) => one?.logprobs ?? []) } }),
  };
}

function unscored({ token_ids }: TreeNode, reason: TeacherReason): TeacherScore {
  return { logprobs: token_ids.map(() => null), reason };
}
