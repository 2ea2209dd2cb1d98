/** Reads a window of a session's tokens with all that is recorded of each. It does not decode tokens: an unknown text stays unknown. */
import type { UntrainedReason } from "../../base/schema/reasons/untrained.ts";
import type { CallRecord, Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import {
  defaultTrainer,
  type Judge,
  recordedReasonOf,
  TokenPaths,
  type ToldTokens,
  type TrainerLogprobs,
  toJudge,
  toldTokens,
} from "../../reconstruct/index.ts";

export type TokenOfPage = {
  id: number;
  /** null: its text is not recorded. */
  text: string | null;
  logprob: number | null;
  /** Recomputed by the trainer; null: not told of. */
  trainer: number | null;
  /** null: the token is trained, or was not sampled. */
  reason: UntrainedReason | null;
};

/** The tokens of one node in the window. `from`: position of its first token in the trace. */
export type TokenRun = {
  kind: TreeNode["kind"];
  node_id: string;
  call: CallRecord | null;
  turn: number | null;
  from: number;
  /** Its place among the neighbouring nodes of the same call and kind. `from`: its first token there; `of`: their length. */
  part: { from: number; of: number };
  policy_version: string | null;
  /** Why the trainer's logprobs of the call cannot be held against the recorded ones; null: they can, or there are none. */
  not_comparable: string | null;
  tokens: TokenOfPage[];
};

export type TokenWindow = {
  trace_id: string;
  /** Number of tokens in the whole trace. */
  length: number;
  from: number;
  to: number;
  runs: TokenRun[];
};

/** Returns a token's text for a tokenizer fingerprint; null if unknown. */
export type TokenText = (fingerprint: string | null, id: number) => string | null;

/** A page with more tokens becomes slow. */
export const windowTokens = 2_000;

export type WindowPlace = { trace: string | null; turn: number | null; from: number | null };

export type TrainerCalls = ReadonlyMap<string, TrainerLogprobs>;

/** null: no token ids are recorded. A turn's window begins a little before its first sampled token, to show context. */
export function tokenWindow(
  trajectory: Trajectory,
  place: WindowPlace,
  textOf: TokenText,
  trainer: TrainerCalls | null = null,
): TokenWindow | null {
  const { traces, calls } = trajectory;
  const paths = new TokenPaths(trajectory);
  const call = place.turn === null ? undefined : calls[place.turn - 1];
  const chosen =
    traces.find(({ trace_id }) => trace_id === place.trace) ?? withCall(trajectory, paths, call?.call_id) ?? longest(trajectory, paths);
  if (chosen === null) return null;
  const nodes = paths.nodes(chosen.leaf_node_id);
  const length = nodes.reduce((sum, { token_ids }) => sum + token_ids.length, 0);
  const begin = place.from ?? Math.max(0, positionOf(nodes, call?.call_id) - contextTokens);
  const from = Math.min(Math.max(0, begin), Math.max(0, length - 1));
  const to = Math.min(length, from + windowTokens);
  const whyNot = toJudge(trajectory, defaultTrainer, trajectory);
  const toldOf = trainer === null ? () => null : toldTokens(trajectory, trainer);
  return { trace_id: chosen.trace_id, length, from, to, runs: runsOf(nodes, [from, to], calls, { whyNot, textOf, toldOf }) };
}

const contextTokens = 100;

type Traced = Trajectory["traces"][number];

function withCall({ traces }: Trajectory, paths: TokenPaths, callId: string | undefined): Traced | null {
  if (callId === undefined) return null;
  return (
    traces.find(({ leaf_node_id }) => paths.nodes(leaf_node_id).some((node) => node.call_id === callId && node.kind === "sampled")) ?? null
  );
}

function longest({ traces }: Trajectory, paths: TokenPaths): Traced | null {
  let best: { trace: Traced; length: number } | null = null;
  for (const trace of traces) {
    const length = paths.nodes(trace.leaf_node_id).reduce((sum, { token_ids }) => sum + token_ids.length, 0);
    if (best === null || length > best.length) best = { trace, length };
  }
  return best?.trace ?? null;
}

/** Returns the position of the call's first sampled token; 0 if it has none. */
function positionOf(nodes: readonly TreeNode[], callId: string | undefined): number {
  let position = 0;
  for (const node of nodes) {
    if (node.call_id === callId && node.kind === "sampled") return position;
    position += node.token_ids.length;
  }
  return 0;
}

type TokenFacts = { whyNot: Judge; textOf: TokenText; toldOf: (node: TreeNode) => ToldTokens | null };

function runsOf(
  nodes: readonly TreeNode[],
  [from, to]: [number, number],
  calls: readonly CallRecord[],
  { whyNot, textOf, toldOf }: TokenFacts,
): TokenRun[] {
  const turns = new Map(calls.map((call, at) => [call.call_id, { call, turn: at + 1 }]));
  const runs: TokenRun[] = [];
  const stretches = stretchesOf(nodes);
  let position = 0;
  for (const [index, node] of nodes.entries()) {
    const [first, last] = [Math.max(0, from - position), Math.min(node.token_ids.length, to - position)];
    if (first < last) {
      const { call = null, turn = null } = turns.get(node.call_id) ?? {};
      const fingerprint = call?.fingerprints?.tokenizer ?? null;
      const { kind, node_id, policy_version } = node;
      const told = toldOf(node);
      const tokens = tokensOf(node, [first, last], whyNot(node)).map((token, at) => ({
        ...token,
        text: textOf(fingerprint, token.id),
        trainer: told?.logprobs[first + at] ?? null,
      }));
      const not_comparable = told?.not_comparable ?? null;
      const { before = 0, of = node.token_ids.length } = stretches[index] ?? {};
      const part = { from: before + first, of };
      runs.push({ kind, node_id, call, turn, from: position + first, part, policy_version, not_comparable, tokens });
    }
    position += node.token_ids.length;
  }
  return runs;
}

/** For each node: the tokens of its stretch before it, and in the whole stretch. A branch may split a prompt into nodes. */
function stretchesOf(nodes: readonly TreeNode[]): { before: number; of: number }[] {
  const lengths: number[] = [];
  const starts = nodes.map(({ kind, call_id, token_ids }, at) => {
    const last = nodes[at - 1];
    if (last?.kind !== kind || last.call_id !== call_id) lengths.push(0);
    const stretch = lengths.length - 1;
    const before = lengths[stretch] ?? 0;
    lengths[stretch] = before + token_ids.length;
    return { before, stretch };
  });
  return starts.map(({ before, stretch }) => ({ before, of: lengths[stretch] ?? 0 }));
}

/**
 * If the record excludes a call, all of its tokens show that reason. If only a trainer's options exclude it, forced tokens
 * keep their own reason.
 */
function tokensOf(
  node: TreeNode,
  [first, last]: [number, number],
  reason: UntrainedReason | null,
): Omit<TokenOfPage, "text" | "trainer">[] {
  const isSampled = node.kind === "sampled";
  const hasForced = recordedReasonOf(node) === null || reason !== node.reason;
  return node.token_ids.slice(first, last).map((id, at) => {
    const isForced = hasForced && node.forced?.[first + at] === true;
    const logprob = node.logprobs?.[first + at] ?? null;
    return { id, logprob, reason: !isSampled ? null : isForced ? "forced" : reason };
  });
}
