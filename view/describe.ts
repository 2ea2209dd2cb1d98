/** The words that describe a session, in the terminal and on the page. */

import { meaningOf } from "../base/schema/reasons/meaning.ts";
import { teacherReasons } from "../base/schema/reasons/teacher.ts";
import { untrainedReasons } from "../base/schema/reasons/untrained.ts";
import type { RewardComponent } from "../base/schema/reward-component.ts";
import type { Teacher, Trajectory } from "../base/schema/trajectory.ts";
import { describeOmitted, type Teaching, teachingOf } from "../reconstruct/index.ts";
import type { BlockView, BranchView, SessionView, SpanView, TraceView, TurnTokens, TurnView } from "./session-view.ts";

/** The speaker of a block, as its heading. */
export const blockLabels: Record<BlockView["kind"], string> = {
  system: "system",
  developer: "developer",
  user: "user",
  assistant: "assistant",
  reasoning: "thinks",
  tool_call: "calls",
  tool_result: "result",
  image: "image",
};

/** What the stretches of a strip are, in the order of its legend. */
export const spanWords: Record<SpanView["kind"], string> = {
  prompt: "prompt",
  observation: "observation",
  trainable: "trainable",
  forced: "forced",
  excluded: "not trained",
};

export function describeTrace({ trace_id, agent, tokens, trainable }: TraceView): string {
  return `${trace_id} · ${agent} · ${tokens.toLocaleString("en")} tokens, ${trainable.toLocaleString("en")} trainable`;
}

/** A turn's agent, its delivery and its use in training. */
export function describeBranch({ turns }: BranchView): string {
  const [first] = turns as [TurnView];
  const { agent, request_class } = first.call;
  const who = request_class === "main" || request_class === agent ? agent : `${agent} (${request_class.replaceAll("_", " ")})`;
  const unfinished = turns.filter((turn) => turn.call.outcome !== "delivered").map((turn) => `${turn.number} ${turn.call.outcome}`);
  const sum = (count: (turn: TurnView) => number) => turns.reduce((total, turn) => total + count(turn), 0);
  const own = sum(({ call, tokens }) => (call.replayed_from === null ? (tokens.sampled ?? 0) : 0));
  const tokens = `${sum((turn) => turn.tokens.trainable).toLocaleString("en")} of ${own.toLocaleString("en")} sampled tokens trainable`;
  return [who, tokens, ...unfinished].join(", ");
}

/** Width of a span in a strip: logarithmic, for a prompt of 20,000 tokens must not hide a turn of 20. */
export function spanWidth(tokens: number): number {
  return Math.max(1, Math.round(Math.log2(tokens + 1)));
}

/** Both sides of a readable difference; null where the text is equal or was not decoded. */
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

/** Facts of a whole session, as name and value. */
export function describeSession({ trajectory: t }: SessionView): [string, string][] {
  const of = (value: number | null) => (value === null ? "" : ` of ${value}`);
  const rows: [string, string | null][] = [
    ["session", t.session_id],
    ["rollout", t.rollout_id === null ? null : `${t.rollout_id}, attempt ${t.attempt}${t.member === null ? "" : `, member ${t.member}`}`],
    ["task", t.task.id],
    ["group", t.group.id === null ? null : `${t.group.id}, sample ${t.group.sample_index ?? "?"}${of(t.group.size)}`],
    ["harness", t.harness.name === null ? null : `${t.harness.name} ${t.harness.version ?? ""}`.trim()],
    ["reward", t.reward === null ? "none (null: nothing was measured)" : String(t.reward)],
    ["status", `${t.status}${t.stop_reason === null ? "" : `, stopped: ${t.stop_reason}`}`],
    ["training", `${t.purpose}; ${t.in_loss ? "in the loss" : "not in the loss"}, ${t.in_baseline ? "in" : "not in"} the baseline`],
    ["masked because", t.mask_reason],
    ["teacher", t.teacher === undefined ? null : describeTeacher(t.teacher, teachingOf(t))],
    ["goes on from", t.forked_from && describeFork(t.forked_from)],
    ["replay", t.replay && describeReplay(t.replay)],
    ["first difference", t.replay?.difference ?? null],
    ["out of order", t.replay?.out_of_order ?? null],
    ...t.reward_components.slice(0, mostComponents).map(describeComponent),
    ["further reward components", t.reward_components.length > mostComponents ? String(t.reward_components.length - mostComponents) : null],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== null);
}

function describeTeacher({ model, url, scored }: Teacher, { scored_tokens, unscored, compared_tokens, gap }: Teaching): string {
  const missing = Object.entries(unscored).map(
    ([reason, tokens]) => `, ${tokens.toLocaleString("en")} ${reason.replaceAll("_", " ")}${meaningOf(teacherReasons, reason)}`,
  );
  const mean = compared_tokens === 0 ? "" : `, mean gap ${(gap / compared_tokens).toFixed(4)} nats`;
  return `${model} at ${url}, ${new Date(scored).toISOString()}: ${scored_tokens.toLocaleString("en")} tokens scored${missing.join("")}${mean}`;
}

function describeFork({ rollout_id, session_id, turn, edited, rendered }: NonNullable<Trajectory["forked_from"]>): string {
  const how = [edited ? "whose answer was given by hand" : "", rendered ? "by a prompt that was rendered anew" : ""].filter(Boolean);
  return [`turn ${turn} of ${rollout_id ?? session_id}`, ...how].join(", ");
}

function describeReplay({ how, turns, classes }: NonNullable<Trajectory["replay"]>): string {
  const counts = Object.entries(classes).map(([name, count]) => `${count} ${name}`);
  return `${how ?? "did not end"}, ${turns} calls answered from the record; requests: ${counts.join(", ") || "none"}`;
}

/** A call can have one for each of its tokens. */
const mostComponents = 12;

function describeComponent({ scope, target, name, value, weight }: RewardComponent): [string, string] {
  const of = target === null ? "" : ` of ${scope} ${target}`;
  return [`component ${name}`, `${value === null ? "null: not measured" : value}${of}${weight === null ? "" : `, weight ${weight}`}`];
}

export function describeFidelity({ trajectory: { fidelity: f } }: SessionView): [string, string][] {
  const notTrained = Object.entries(f.excluded).map(([reason, tokens]): [string, string] => [
    "not trained",
    `${tokens.toLocaleString("en")} ${reason.replaceAll("_", " ")}${meaningOf(untrainedReasons, reason)}`,
  ]);
  const list = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([name, value]) => `${value.toLocaleString("en")} ${name.replaceAll("_", " ")}`)
      .join(", ") || "none";
  const leftOut = describeOmitted(f.omitted);
  const share = f.sampled_tokens === 0 ? "" : ` (${Math.round((100 * f.trainable_tokens) / f.sampled_tokens)} %)`;
  return [
    ["sampled tokens", f.sampled_tokens.toLocaleString("en")],
    ...(f.replayed_tokens ? [["replayed tokens", f.replayed_tokens.toLocaleString("en")] as [string, string]] : []),
    ["trainable", `${f.trainable_tokens.toLocaleString("en")}${share}`],
    ...notTrained,
    ["left out by kind of call", list(f.by_class)],
    ...(Object.keys(f.uncounted).length === 0
      ? []
      : [["calls that sampled an unknown number more", list(f.uncounted)] as [string, string]]),
    ["edges", list(f.matches)],
    ["causes", list(f.causes)],
    ["outcomes", list(f.outcomes)],
    ...(leftOut === null ? [] : [["requests", leftOut] as [string, string]]),
    ["logprob coverage", f.logprob_coverage === null ? "nothing was sampled" : `${(100 * f.logprob_coverage).toFixed(1)} %`],
    ["resampled", String(f.resampled)],
    ["row inflation", f.row_inflation === null ? "no trainable rows" : f.row_inflation.toFixed(2)],
    ...f.damaged.map(({ call_id, reason }): [string, string] => [call_id === null ? "damaged" : `damaged ${call_id}`, reason]),
    ["policy versions", f.policy_versions.join(", ") || "none named"],
    ...(Object.keys(f.policy_checks).length === 0 ? [] : [["policy against the engine's word", list(f.policy_checks)] as [string, string]]),
  ];
}

/** `prompt 812, sampled 40: 31 trainable, 9 forced`. */
export function describeTokens({ prompt, sampled, uncounted, trainable, forced, reason }: TurnTokens): string {
  const more =
    uncounted === null ? "" : `, an unknown number sampled${sampled === null ? "" : " more"} (${uncounted.replaceAll("_", " ")})`;
  const mask = reason === null ? `${trainable.toLocaleString("en")} trainable` : `not trained (${reason.replaceAll("_", " ")})`;
  if (prompt === null && sampled === null) return `no token ids${more}${reason === null || reason === "no_token_ids" ? "" : `: ${mask}`}`;
  const grammar = forced === 0 ? "" : `, ${forced.toLocaleString("en")} forced`;
  return `prompt ${prompt?.toLocaleString("en") ?? "unknown"}, sampled ${sampled?.toLocaleString("en") ?? "unknown"}: ${mask}${grammar}${more}`;
}
