/**
 * Two sessions side by side: each call of the one with the call of the other that stands at its place, where their
 * prompts and samples part, and the whole of their longest conversations aligned token by token.
 */

import type { CallRecord, Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import { alignTokens, type Stretch } from "../../base/tokens/align.ts";
import { commonPrefix } from "../../base/tokens/prefix.ts";
import { TokenPaths } from "../../reconstruct/index.ts";
import { saidIn, whyTheyPart, withoutIds } from "./why-they-part.ts";

export type SessionLengths = { a: number; b: number; shared: number };

export type PairedCall = {
  /** From 1; null: the other session has no such call. */
  turn_a: number | null;
  turn_b: number | null;
  /** null where one of them has no token ids. */
  prompt: SessionLengths | null;
  sample: SessionLengths | null;
  /** Tokens where both have them, else messages. */
  same: boolean;
};

export type SessionDiff = {
  same: boolean;
  calls: PairedCall[];
  /** The first pair that differs, what differs, and both sides in words where there are any. */
  parting: { pair: PairedCall; where: "prompt" | "sample" | "missing"; why: string; a: string | null; b: string | null } | null;
  /** The longest traces, as stretches of equal and of different tokens with their text. */
  alignment: { trace_a: string; trace_b: string; stretches: (Stretch & { in_a: string; in_b: string })[] } | null;
};

/** `aligns`: aligns the longest traces too, which is the slowest part. */
export function compareSessions(a: Trajectory, b: Trajectory, { aligns = true } = {}): SessionDiff {
  const [left, right] = [new Side(a), new Side(b)];
  const calls = pairCalls(a, b).map(([inA, inB]) => compareCalls(inA, inB, left, right));
  const first = calls.find((pair) => !pair.same);
  return {
    same: first === undefined,
    calls,
    parting: first === undefined ? null : partingOf(first, left, right),
    alignment: aligns ? alignLongest(left, right) : null,
  };
}

/** Agents have names of their own in every session: a call's place is its agent's, by first turns, its class, and its number there. */
function pairCalls(a: Trajectory, b: Trajectory): [CallRecord | null, CallRecord | null][] {
  const places = new Map<string, [CallRecord | null, CallRecord | null]>();
  for (const [side, trajectory] of [a, b].entries()) {
    const agents = [...new Set(trajectory.calls.map((call) => call.agent))].filter((agent) => agent !== "main");
    const counts = new Map<string, number>();
    for (const call of trajectory.calls) {
      const kind = `${agents.indexOf(call.agent)} ${call.request_class}`;
      const count = counts.get(kind) ?? 0;
      counts.set(kind, count + 1);
      const pair = places.get(`${kind} ${count}`) ?? [null, null];
      pair[side] = call;
      places.set(`${kind} ${count}`, pair);
    }
  }
  return [...places.values()];
}

/** A trajectory with its paths, and the words in its messages. */
class Side {
  readonly trajectory: Trajectory;
  readonly #paths: TokenPaths;
  readonly #turns: Map<string, number>;
  readonly #samples: Map<string, TreeNode[]>;

  constructor(trajectory: Trajectory) {
    this.trajectory = trajectory;
    this.#paths = new TokenPaths(trajectory);
    this.#turns = new Map(trajectory.calls.map((call, index) => [call.call_id, index + 1]));
    this.#samples = Map.groupBy(
      trajectory.nodes.filter((node) => node.kind === "sampled"),
      (node) => node.call_id,
    );
  }

  turn(call: CallRecord): number {
    return this.#turns.get(call.call_id) as number;
  }

  prompt(call: CallRecord): number[] | null {
    if (call.prompt_length === 0) return [];
    return call.prompt_node_id === null ? null : this.#paths.tokens(call.prompt_node_id);
  }

  sample(call: CallRecord): number[] | null {
    return call.sampled_length === null ? null : (this.#samples.get(call.call_id) ?? []).flatMap((node) => node.token_ids);
  }

  /** The trace with the most tokens. */
  longest(): { trace_id: string; nodes: TreeNode[] } | null {
    let best: { trace_id: string; nodes: TreeNode[]; length: number } | null = null;
    for (const { trace_id, leaf_node_id } of this.trajectory.traces) {
      const nodes = this.#paths.nodes(leaf_node_id);
      const length = nodes.reduce((sum, node) => sum + node.token_ids.length, 0);
      if (best === null || length > best.length) best = { trace_id, nodes, length };
    }
    return best;
  }

  /** What stands at these tokens of a path: `sampled in turn 3`. */
  describe(nodes: TreeNode[], from: number, to: number): string {
    const words: string[] = [];
    let depth = 0;
    for (const { kind, call_id, token_ids } of nodes) {
      const isWithin = depth < Math.max(to, from + 1) && depth + token_ids.length > from;
      depth += token_ids.length;
      const turn = this.#turns.get(call_id);
      if (isWithin) words.push(kind === "sampled" ? `sampled in turn ${turn}` : `${kind} of turn ${turn}`);
    }
    return words.length <= 2 ? words.join(", ") : `${words[0]} … ${words.at(-1)}`;
  }
}

function compareCalls(a: CallRecord | null, b: CallRecord | null, left: Side, right: Side): PairedCall {
  const turns = { turn_a: a && left.turn(a), turn_b: b && right.turn(b) };
  if (a === null || b === null) return { ...turns, prompt: null, sample: null, same: false };
  const prompt = lengthsOf(left.prompt(a), right.prompt(b));
  const sample = lengthsOf(left.sample(a), right.sample(b));
  const same = (prompt === null ? sameMessages(a.input, b.input, left, right) : isSame(prompt)) && (sample === null || isSame(sample));
  const saysSame = sample !== null || sameMessages([a.output], [b.output], left, right);
  return { ...turns, prompt, sample, same: same && saysSame };
}

function lengthsOf(a: number[] | null, b: number[] | null): SessionLengths | null {
  return a === null || b === null ? null : { a: a.length, b: b.length, shared: commonPrefix(a, b) };
}

const isSame = ({ a, b, shared }: SessionLengths): boolean => shared === a && shared === b;

function sameMessages(a: (string | null)[], b: (string | null)[], left: Side, right: Side): boolean {
  const words = (id: string | null | undefined, side: Side): string | null => {
    const message = id == null ? undefined : side.trajectory.messages[id];
    return message === undefined ? null : withoutIds(message);
  };
  return a.length === b.length && a.every((id, at) => words(id, left) === words(b[at], right));
}

function partingOf(pair: PairedCall, left: Side, right: Side): SessionDiff["parting"] {
  const call = (side: Side, turn: number | null) => (turn === null ? null : (side.trajectory.calls[turn - 1] as CallRecord));
  const [a, b] = [call(left, pair.turn_a), call(right, pair.turn_b)];
  if (a === null || b === null) {
    const why = `only ${a === null ? "B" : "A"} has this call`;
    return { pair, where: "missing", why, a: a && saidIn(a, left.trajectory), b: b && saidIn(b, right.trajectory) };
  }
  const isPrompt = pair.prompt === null ? !sameMessages(a.input, b.input, left, right) : !isSame(pair.prompt);
  const found = whyTheyPart(a, b, isPrompt ? "prompt" : "sample", left.trajectory, right.trajectory);
  return { pair, where: isPrompt ? "prompt" : "sample", ...found };
}

function alignLongest(left: Side, right: Side): SessionDiff["alignment"] {
  const [a, b] = [left.longest(), right.longest()];
  if (a === null || b === null) return null;
  const ids = (nodes: TreeNode[]) => nodes.flatMap((node) => node.token_ids);
  const stretches = alignTokens(ids(a.nodes), ids(b.nodes)).map((stretch) => ({
    ...stretch,
    in_a: left.describe(a.nodes, ...stretch.a),
    in_b: right.describe(b.nodes, ...stretch.b),
  }));
  return { trace_a: a.trace_id, trace_b: b.trace_id, stretches };
}
