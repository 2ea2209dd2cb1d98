/** A trajectory as a person reads it: turns with what is new in each, the branches, and the mask of every trace. */
import type { Message, Part } from "../../schema/message.ts";
import type { CallRecord, Trajectory, TreeNode } from "../../schema/trajectory.ts";

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
  /** The earlier turn that asked exactly the same: a retry, or a twin in parallel. */
  same_request: number | null;
  /** Messages that the parent's conversation (or that same request) had too; they are not repeated. */
  repeated: number;
  added: BlockView[];
  said: BlockView[];
  tokens: TokenCounts;
};

export type TokenCounts = {
  prompt: number | null;
  sampled: number | null;
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
};

export type BranchView = { turns: TurnView[]; depth: number };

export type SpanView = { kind: "prompt" | "observation" | "trainable" | "forced" | "excluded"; tokens: number; title: string };

export type TraceView = { trace_id: string; agent: string; tokens: number; trainable: number; spans: SpanView[] };

export function toSessionView(trajectory: Trajectory): SessionView {
  const numbers = new Map(trajectory.calls.map((call, index) => [call.call_id, index + 1]));
  const calls = new Map(trajectory.calls.map((call) => [call.call_id, call]));
  const counts = countTokens(trajectory.nodes);
  const requests = new Map<string, number>();
  const turns = trajectory.calls.map((call) => toTurn(call, { trajectory, numbers, calls, counts, requests }));
  return { trajectory, turns, branches: toBranches(turns), traces: toTraces(trajectory, numbers) };
}

type Context = {
  trajectory: Trajectory;
  numbers: Map<string, number>;
  calls: Map<string, CallRecord>;
  counts: Map<string, Pick<TokenCounts, "trainable" | "forced" | "reason">>;
  /** Agent and message ids of a request -> the first turn that asked it. */
  requests: Map<string, number>;
};

function toTurn(call: CallRecord, context: Context): TurnView {
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
    said: blocks([call.output]),
    tokens: {
      prompt: call.prompt_length,
      sampled: call.sampled_length,
      ...(counts.get(call.call_id) ?? { trainable: 0, forced: 0, reason: call.sampled_length === null ? "no_token_ids" : null }),
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

function countTokens(nodes: TreeNode[]): Context["counts"] {
  const counts: Context["counts"] = new Map();
  for (const node of nodes) {
    if (node.kind !== "sampled") continue;
    const count = counts.get(node.call_id) ?? { trainable: 0, forced: 0, reason: node.reason };
    const forced = node.forced?.filter(Boolean).length ?? 0;
    count.forced += forced;
    if (node.trainable) count.trainable += node.token_ids.length - forced;
    counts.set(node.call_id, count);
  }
  return counts;
}

function toBlocks(message: Message | undefined): BlockView[] {
  return message === undefined ? [] : message.parts.map((part) => toBlock(message.role, part));
}

function toBlock(role: Message["role"], part: Part): BlockView {
  switch (part.type) {
    case "text":
      return { kind: role === "tool" ? "tool_result" : role, detail: "", text: part.text, error: false };
    case "reasoning":
      return { kind: "reasoning", detail: "", text: part.text, error: false };
    case "tool_call":
      return { kind: "tool_call", detail: part.name, text: part.arguments, error: false };
    case "image":
      return { kind: "image", detail: "", text: describeImage(part.url), error: false };
    case "tool_result": {
      const text = part.content.map((inner) => (inner.type === "text" ? inner.text : `[${describeImage(inner.url)}]`)).join("\n");
      return { kind: "tool_result", detail: part.is_error ? "error" : "", text, error: part.is_error };
    }
  }
}

/** Never the picture itself: the page loads nothing, and a data URL is no reading. */
function describeImage(url: string): string {
  const data = /^data:([\w/+.-]*)/.exec(url);
  return data ? `image ${data[1] || "of unknown type"}, ${url.length.toLocaleString("en")} characters` : `image at ${url}`;
}

/** Depth first; the first call of the same agent that continues its parent exactly stays in the parent's run. */
function toBranches(turns: TurnView[]): BranchView[] {
  const children = new Map<number | null, TurnView[]>();
  for (const turn of turns) children.set(turn.parent, [...(children.get(turn.parent) ?? []), turn]);
  const branches: BranchView[] = [];
  const stack = (children.get(null) ?? []).map((turn) => ({ turn, depth: 0 })).reverse();
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const run: TurnView[] = [];
    const aside: { turn: TurnView; depth: number }[] = [];
    for (let turn: TurnView | undefined = next.turn; turn !== undefined; ) {
      run.push(turn);
      const below: TurnView[] = children.get(turn.number) ?? [];
      const agent: string = turn.call.agent;
      const goesOn: TurnView | undefined = below.find((child) => child.call.match === "exact" && child.call.agent === agent);
      for (const child of below) if (child !== goesOn) aside.push({ turn: child, depth: next.depth + 1 });
      turn = goesOn;
    }
    branches.push({ turns: run, depth: next.depth });
    stack.push(...aside.reverse());
  }
  return branches;
}

function toTraces(trajectory: Trajectory, numbers: Map<string, number>): TraceView[] {
  const nodes = new Map(trajectory.nodes.map((node) => [node.node_id, node]));
  return trajectory.traces.map(({ trace_id, leaf_node_id, agent }) => {
    const path: TreeNode[] = [];
    for (let node = nodes.get(leaf_node_id); node !== undefined; node = node.parent_id === null ? undefined : nodes.get(node.parent_id))
      path.push(node);
    const spans = joined(path.reverse().flatMap((node) => toSpans(node, numbers.get(node.call_id) ?? 0)));
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
function toSpans(node: TreeNode, number: number): SpanView[] {
  const { length } = node.token_ids;
  if (node.kind !== "sampled") return [{ kind: node.kind, tokens: length, title: `${node.kind} of turn ${number}: ${length} tokens` }];
  if (!node.trainable)
    return [{ kind: "excluded", tokens: length, title: `turn ${number}: ${length} tokens, ${node.reason ?? "not trained"}` }];
  const spans: SpanView[] = [];
  for (let at = 0; at < length; at++) {
    const kind = node.forced?.[at] === true ? "forced" : "trainable";
    const last = spans.at(-1);
    if (last?.kind === kind) last.tokens++;
    else spans.push({ kind, tokens: 1, title: "" });
  }
  for (const span of spans) span.title = `turn ${number}: ${span.tokens} ${span.kind} tokens`;
  return spans;
}

/** Width of a span in a strip: logarithmic, for a prompt of 20,000 tokens must not hide a turn of 20. */
export function spanWidth(tokens: number): number {
  return Math.max(1, Math.round(Math.log2(tokens + 1)));
}

/** Both sides of a difference that a person can see; null where the text is the same, or nobody decoded it. */
export function describeDifference({ call }: TurnView): { before: string; now: string } | null {
  const { difference, match } = call;
  if (match === "same_text" || difference === null) return null;
  if (difference.parent_text === null && difference.child_text === null) return null;
  return { before: difference.parent_text ?? "", now: difference.child_text ?? "" };
}

/** `exact after turn 2`, `diverged from turn 2 at token 812: reasoning_dropped` … */
export function describeEdge({ call, parent }: TurnView): string {
  if (parent === null) return "begins a conversation";
  if (call.match === "exact") return `continues turn ${parent} exactly`;
  const at = call.difference === null ? "" : ` at token ${call.difference.position.toLocaleString("en")}`;
  const how = call.match === "same_text" ? `same text as turn ${parent} in other tokens` : `${call.match} from turn ${parent}`;
  return `${how}${at}${call.cause === null ? "" : `: ${call.cause.replaceAll("_", " ")}`}`;
}

/** What of the request is not shown again; empty where all of it is new. */
export function describeRepeated({ same_request, repeated }: TurnView): string {
  if (same_request !== null) return `the request of turn ${same_request} again`;
  return repeated === 0 ? "" : `${repeated} messages as before`;
}

/** What is said of a whole session, as name and value. */
export function describeSession({ trajectory: t }: SessionView): [string, string][] {
  const of = (value: number | null) => (value === null ? "" : ` of ${value}`);
  const rows: [string, string | null][] = [
    ["session", t.session_id],
    ["rollout", t.rollout_id === null ? null : `${t.rollout_id}, attempt ${t.attempt}`],
    ["task", t.task.id],
    ["group", t.group.id === null ? null : `${t.group.id}, sample ${t.group.sample_index ?? "?"}${of(t.group.size)}`],
    ["harness", t.harness.name === null ? null : `${t.harness.name} ${t.harness.version ?? ""}`.trim()],
    ["reward", t.reward === null ? "none (null: nothing was measured)" : String(t.reward)],
    ["status", `${t.status}${t.stop_reason === null ? "" : `, stopped: ${t.stop_reason}`}`],
    ["training", `${t.purpose}; ${t.in_loss ? "in the loss" : "not in the loss"}, ${t.in_baseline ? "in" : "not in"} the baseline`],
    ["masked because", t.mask_reason],
    ...t.values.map((value): [string, string] => [`value ${value.name}`, value.value === null ? "null" : String(value.value)]),
  ];
  return rows.filter((row): row is [string, string] => row[1] !== null);
}

export function describeFidelity({ trajectory: { fidelity: f } }: SessionView): [string, string][] {
  const list = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([name, value]) => `${value.toLocaleString("en")} ${name.replaceAll("_", " ")}`)
      .join(", ") || "none";
  const share = f.sampled_tokens === 0 ? "" : ` (${Math.round((100 * f.trainable_tokens) / f.sampled_tokens)} %)`;
  return [
    ["sampled tokens", f.sampled_tokens.toLocaleString("en")],
    ["trainable", `${f.trainable_tokens.toLocaleString("en")}${share}`],
    ["not trained", list(f.excluded)],
    ["edges", list(f.matches)],
    ["causes", list(f.causes)],
    ["outcomes", list(f.outcomes)],
    ["logprob coverage", f.logprob_coverage === null ? "nothing was sampled" : `${(100 * f.logprob_coverage).toFixed(1)} %`],
    ["resampled", String(f.resampled)],
    ["row inflation", f.row_inflation === null ? "no trainable rows" : f.row_inflation.toFixed(2)],
    ["policy versions", f.policy_versions.join(", ") || "none named"],
  ];
}

/** `prompt 812, sampled 40: 31 trainable, 9 forced`. */
export function describeTokens({ prompt, sampled, trainable, forced, reason }: TokenCounts): string {
  if (prompt === null && sampled === null) return "no token ids";
  const mask = reason === null ? `${trainable.toLocaleString("en")} trainable` : `not trained (${reason.replaceAll("_", " ")})`;
  const grammar = forced === 0 ? "" : `, ${forced.toLocaleString("en")} forced`;
  return `prompt ${prompt?.toLocaleString("en") ?? "unknown"}, sampled ${sampled?.toLocaleString("en") ?? "unknown"}: ${mask}${grammar}`;
}
