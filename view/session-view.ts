/** A trajectory as a person reads it: turns with what is new in each, the branches, and the mask of every trace. */

import { imageName, isStored } from "../base/media/stored-picture.ts";
import type { ImagePart, Message, Part } from "../base/schema/message.ts";
import type { CallRecord, Trajectory, TreeNode } from "../base/schema/trajectory.ts";
import { defaultTrainer, type Judge, recordedReasonOf, toJudge, tokensOutside } from "../reconstruct/index.ts";

export type SessionView = {
  trajectory: Trajectory;
  turns: TurnView[];
  /** Runs of calls that continue each other exactly; each run but the first ones hangs on a call of another. */
  branches: BranchView[];
  traces: TraceView[];
};

export type TurnView = {
  call: CallRecord;
  /** 1 for the first call. */
  number: number;
  parent: number | null;
  /** The earlier turn with exactly the same request: a retry, or a parallel twin. */
  same_request: number | null;
  /** Messages that the parent's conversation (or that same request) had too; they are not repeated. */
  repeated: number;
  added: BlockView[];
  output: BlockView[];
  tokens: TurnTokens;
};

export type TurnTokens = {
  prompt: number | null;
  sampled: number | null;
  /** Why it sampled an unknown number more than that; null where that is all. */
  uncounted: string | null;
  trainable: number;
  forced: number;
  /** Why the sample is not trained; null where it is, or where nothing was sampled. */
  reason: string | null;
};

/** A part of a message. `detail`: the tool's name, or what kind of result it is. */
export type BlockView = {
  kind: "system" | "developer" | "user" | "assistant" | "reasoning" | "tool_call" | "tool_result" | "image";
  detail: string;
  text: string;
  error: boolean;
  /** URLs of its pictures, unchanged. */
  images: string[];
};

export type BranchView = {
  turns: TurnView[];
  depth: number;
  /** For the branch and each one above it, from the top: is it the last one at its level? */
  lasts: boolean[];
  /** It alone goes on from the end of the branch before it: drawn below it, so that a session of many drifts is no staircase. */
  follows: boolean;
};

export type SpanView = { kind: "prompt" | "observation" | "trainable" | "forced" | "excluded"; tokens: number; title: string };

export type TraceView = { trace_id: string; agent: string; tokens: number; trainable: number; spans: SpanView[] };

export function toSessionView(trajectory: Trajectory): SessionView {
  const numbers = new Map(trajectory.calls.map((call, index) => [call.call_id, index + 1]));
  const calls = new Map(trajectory.calls.map((call) => [call.call_id, call]));
  const whyNot = toJudge(trajectory, defaultTrainer, trajectory);
  const counts = countTokens(trajectory, whyNot);
  const requests = new Map<string, number>();
  const turns = trajectory.calls.map((call) => toTurn(call, { trajectory, numbers, calls, counts, requests }));
  return {
    trajectory,
    turns,
    // Pages of a rollout need neither, and an agent can make both long.
    get branches() {
      return toBranches(turns);
    },
    get traces() {
      return toTraces(trajectory, numbers, whyNot);
    },
  };
}

type ViewContext = {
  trajectory: Trajectory;
  numbers: Map<string, number>;
  calls: Map<string, CallRecord>;
  counts: Map<string, Pick<TurnTokens, "trainable" | "forced" | "reason">>;
  /** Agent and message ids of a request -> the first turn with that request. */
  requests: Map<string, number>;
};

function toTurn(call: CallRecord, context: ViewContext): TurnView {
  const { trajectory, numbers, calls, counts } = context;
  const number = numbers.get(call.call_id) ?? 0;
  const same_request = takeRequest(call, number, context.requests);
  const parent = call.parent_call_id === null ? undefined : calls.get(call.parent_call_id);
  const before = parent === undefined ? [] : [...parent.input, parent.output];
  const difference = call.input.findIndex((id, at) => id !== before[at]);
  const repeated = same_request !== null || difference < 0 ? call.input.length : difference;
  const blocks = (ids: (string | null)[]) => ids.flatMap((id) => toBlocks(id === null ? undefined : trajectory.messages[id]));
  return {
    call,
    number,
    same_request,
    parent: parent === undefined ? null : (numbers.get(parent.call_id) ?? null),
    repeated,
    added: blocks(call.input.slice(repeated)),
    output: blocks([call.output]),
    tokens: {
      prompt: call.prompt_length,
      sampled: call.sampled_length,
      uncounted: call.uncounted,
      ...(counts.get(call.call_id) ?? { trainable: 0, forced: 0, reason: null }),
    },
  };
}

/** The first turn with this request, if there was one before. */
function takeRequest(call: CallRecord, number: number, requests: Map<string, number>): number | null {
  const key = [call.agent, ...call.input].join(" ");
  const first = requests.get(key);
  if (first === undefined) requests.set(key, number);
  return first ?? null;
}

function countTokens(trajectory: Trajectory, whyNot: Judge): ViewContext["counts"] {
  const counts: ViewContext["counts"] = new Map();
  // A call has no reason if it is known to have sampled nothing.
  for (const { call, reason } of tokensOutside(trajectory))
    if (call.sampled_length !== 0) counts.set(call.call_id, { trainable: 0, forced: 0, reason });
  for (const node of trajectory.nodes) {
    if (node.kind !== "sampled") continue;
    const reason = whyNot(node);
    const count = counts.get(node.call_id) ?? { trainable: 0, forced: 0, reason };
    const forced = node.forced?.filter(Boolean).length ?? 0;
    count.forced += forced;
    if (reason === null) count.trainable += node.token_ids.length - forced;
    counts.set(node.call_id, count);
  }
  return counts;
}

function toBlocks(message: Message | undefined): BlockView[] {
  return message === undefined ? [] : message.parts.map((part) => toBlock(message.role, part));
}

function toBlock(role: Message["role"], part: Part): BlockView {
  const plain = { detail: "", error: false, images: [] };
  switch (part.type) {
    case "text":
      return { ...plain, kind: role === "tool" ? "tool_result" : role, text: part.text };
    case "reasoning":
      return { ...plain, kind: "reasoning", text: part.text };
    case "tool_call":
      return { ...plain, kind: "tool_call", detail: part.name, text: part.arguments };
    case "image":
      return { ...plain, kind: "image", text: describeImage(part), images: [imageName(part)] };
    case "tool_result": {
      const text = part.content.map((inner) => (inner.type === "text" ? inner.text : `[${describeImage(inner)}]`)).join("\n");
      const images = part.content.flatMap((inner) => (inner.type === "image" ? [imageName(inner)] : []));
      const { is_error: error } = part;
      return { kind: "tool_result", detail: error ? "error" : "", text, error, images };
    }
  }
}

/** Never the picture itself: the page loads nothing, and a data URL is no reading. */
function describeImage(part: ImagePart): string {
  if (isStored(part))
    return `image ${part.media_type}, ${part.width}×${part.height}, ${part.bytes.toLocaleString("en")} bytes, media/${part.sha256.slice(0, 12)}…`;
  const { url } = part;
  const data = /^data:([\w/+.-]*)/.exec(url);
  return data ? `image ${data[1] || "of unknown type"}, ${url.length.toLocaleString("en")} characters` : `image at ${url}`;
}

/**
 * Depth first, so that a run stands before what hangs on it; the first call of the same agent that continues its parent
 * exactly stays in the parent's run.
 */
function toBranches(turns: TurnView[]): BranchView[] {
  const children = Map.groupBy(turns, ({ parent }) => parent);
  const branches: BranchView[] = [];
  const roots = children.get(null) ?? [];
  const stack = roots.map((turn, at): Hanging => ({ turn, depth: 0, lasts: [at === roots.length - 1], follows: false })).reverse();
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { depth, lasts } = next;
    const { run, aside } = followRun(next.turn, children);
    branches.push({ turns: run, depth, lasts, follows: next.follows });
    const [only] = aside;
    if (only !== undefined && aside.length === 1 && only.parent === run.at(-1)?.number)
      stack.push({ turn: only, depth, lasts, follows: true });
    else {
      const hanging = (turn: TurnView, at: number): Hanging => ({
        turn,
        depth: depth + 1,
        lasts: [...lasts, at === aside.length - 1],
        follows: false,
      });
      stack.push(...aside.map(hanging).reverse());
    }
  }
  return branches;
}

type Hanging = { turn: TurnView } & Omit<BranchView, "turns">;

/** The turns that go on from each other, and in their order those that hang on one of them. */
function followRun(first: TurnView, children: Map<number | null, TurnView[]>): { run: TurnView[]; aside: TurnView[] } {
  const run: TurnView[] = [];
  const aside: TurnView[] = [];
  for (let turn: TurnView | undefined = first; turn !== undefined; ) {
    run.push(turn);
    const below: TurnView[] = children.get(turn.number) ?? [];
    const agent: string = turn.call.agent;
    const goesOn: TurnView | undefined = below.find((child) => child.call.match === "exact" && child.call.agent === agent);
    aside.push(...below.filter((child) => child !== goesOn));
    turn = goesOn;
  }
  return { run, aside };
}

function toTraces(trajectory: Trajectory, numbers: Map<string, number>, whyNot: Judge): TraceView[] {
  const nodes = new Map(trajectory.nodes.map((node) => [node.node_id, node]));
  return trajectory.traces.map(({ trace_id, leaf_node_id, agent }) => {
    const path: TreeNode[] = [];
    for (let node = nodes.get(leaf_node_id); node !== undefined; node = node.parent_id === null ? undefined : nodes.get(node.parent_id))
      path.push(node);
    const spans = joined(path.reverse().flatMap((node) => toSpans(node, numbers.get(node.call_id) ?? 0, whyNot)));
    const sum = (kept: SpanView[]) => kept.reduce((total, span) => total + span.tokens, 0);
    return { trace_id, agent, tokens: sum(spans), trainable: sum(spans.filter((span) => span.kind === "trainable")), spans };
  });
}

/** A context that other branches have split is still one stretch to the eye. */
function joined(spans: SpanView[]): SpanView[] {
  const out: SpanView[] = [];
  for (const span of spans) {
    const last = out.at(-1);
    if (last === undefined || last.kind !== span.kind || (span.kind !== "prompt" && span.kind !== "observation")) out.push({ ...span });
    else {
      last.tokens += span.tokens;
      last.title = `${last.kind}: ${last.tokens} tokens`;
    }
  }
  return out;
}

/** A sample is cut where forced tokens begin and end. */
function toSpans(node: TreeNode, number: number, whyNot: Judge): SpanView[] {
  const { length } = node.token_ids;
  if (node.kind !== "sampled") return [{ kind: node.kind, tokens: length, title: `${node.kind} of turn ${number}: ${length} tokens` }];
  const reason = whyNot(node);
  // What the record excludes is excluded as a whole; what only a trainer's options exclude still shows its forced tokens.
  const hasForced = recordedReasonOf(node) === null || reason !== node.reason;
  const title = (kind: SpanView["kind"], tokens: number): string =>
    kind === "excluded" ? `turn ${number}: ${tokens} tokens, ${reason}` : `turn ${number}: ${tokens} ${kind} tokens`;
  const spans: SpanView[] = [];
  for (let at = 0; at < length; at++) {
    const isForced = hasForced && node.forced?.[at] === true;
    const kind = isForced ? "forced" : reason === null ? "trainable" : "excluded";
    const last = spans.at(-1);
    if (last?.kind === kind) last.tokens++;
    else spans.push({ kind, tokens: 1, title: "" });
  }
  for (const span of spans) span.title = title(span.kind, span.tokens);
  return spans;
}
