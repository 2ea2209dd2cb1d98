/**
 * Chat messages for SFT: one conversation a line. It needs no token ids, so it works for every engine. An assistant turn
 * that the policy sampled has `weight` 1 in exactly one row, even if several rows repeat it.
 */
import { z } from "zod";
import type { UntrainedReason } from "../base/schema/reasons/untrained.ts";
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import { underRules, whyTurnUntrained } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { isGoodEnough, minReward } from "./rows/min-reward.ts";
import { type RowMessage, toChatMessages, toChatTool } from "./shapes/chat-messages.ts";
import { addLeftOut } from "./shapes/left-out.ts";

export const chat = defineExporter({
  name: "chat",
  title: "one conversation a line for SFT: messages, tools, reward",
  objective: "sft",
  extension: "jsonl",
  selects: false,
  docs: {
    alignment: "none",
    rows: "As many rows as a rollout has branches; `weight` says which turns a row teaches, each turn in one row only.",
    loader: null,
    proof: { how: "fields", by: "documented fields" },
  },
  options: z.strictObject({ min_reward: minReward }),
  async *write(source, { own, ...rules }, report) {
    for await (const recorded of source.trajectories()) {
      const trajectory = underRules(recorded, rules);
      if (!isGoodEnough(trajectory, own.min_reward, report)) continue;
      const { rows, left_out } = toConversations(trajectory);
      addLeftOut(report, left_out);
      for (const row of rows) {
        report.rows++;
        yield JSON.stringify(row);
      }
    }
  },
});

export type ChatRow = {
  messages: RowMessage[];
  tools: Record<string, unknown>[];
  reward: number | null;
  trajectory_id: string;
  rollout_id: string | null;
  group_id: string | null;
  sample_index: number | null;
  agent: string;
  /** The call that sampled the last message. */
  call_id: string;
};

/** Reason -> calls. */
type LeftOut = { [Reason in UntrainedReason]?: number };

/** One row for each call that no other call's conversation goes on from word for word. */
export function toConversations(trajectory: Trajectory): { rows: ChatRow[]; left_out: LeftOut } {
  const left_out: LeftOut = {};
  const usable = trajectory.calls.filter((call) => {
    const reason = whyTurnUntrained(call, trajectory) ?? (call.output === null ? "no_output" : null);
    if (reason !== null) left_out[reason] = (left_out[reason] ?? 0) + 1;
    return reason === null;
  });
  const earlier = earlierTurns(usable);
  const continued = continuedBy(earlier.values());
  const owned = new Set<string>();
  const leaves = usable.filter((call) => !continued.has(call));
  return { left_out, rows: leaves.map((leaf) => toRow(leaf, earlier.get(leaf.call_id) ?? null, owned, trajectory)) };
}

/** A turn in a conversation, and those before it. Chains share what they begin with, so a session's take a link a call. */
type ChainLink = { call: CallRecord; before: ChainLink | null };

/** Call id -> the last of the earlier turns that appear unchanged in its conversation; null: none does. */
export function earlierTurns(calls: readonly CallRecord[]): Map<string, ChainLink | null> {
  const links = new Map<string, ChainLink>();
  for (const call of calls) {
    const parent = links.get(call.parent_call_id ?? "");
    links.set(call.call_id, { call, before: parent === undefined ? null : lastWithin(parent, sharedMessages(call, parent.call)) });
  }
  return new Map([...links].map(([id, { before }]) => [id, before]));
}

/** The child still has the part of the parent's conversation that lies before the first difference. */
function lastWithin(parent: ChainLink, shared: number): ChainLink | null {
  let link: ChainLink | null = parent;
  // Requests grow along a chain: what is before a turn that is within is within too.
  while (link !== null && link.call.input.length >= shared) link = link.before;
  return link;
}

/** The calls of these chains. */
function continuedBy(chains: Iterable<ChainLink | null>): Set<CallRecord> {
  const continued = new Set<CallRecord>();
  for (const chain of chains)
    for (let link = chain; link !== null && !continued.has(link.call); link = link.before) continued.add(link.call);
  return continued;
}

/** The number of leading messages of `call` that equal the parent's conversation and turn. */
function sharedMessages(call: CallRecord, parent: CallRecord): number {
  const { length } = parent.input;
  const end = parent.input.findIndex((id, at) => call.input[at] !== id);
  if (end >= 0) return end;
  return call.input[length] === parent.output ? length + 1 : length;
}

function toRow(leaf: CallRecord, before: ChainLink | null, owned: Set<string>, trajectory: Trajectory): ChatRow {
  const earlier = new Map<number, string>();
  for (let link: ChainLink | null = { call: leaf, before }; link !== null; link = link.before)
    earlier.set(link.call.input.length, link.call.call_id);
  const ids = [...leaf.input, ...(leaf.output === null ? [] : [leaf.output])];
  const messages = ids.flatMap((id, at) => {
    const message = trajectory.messages[id];
    return message === undefined ? [] : toChatMessages(message).map((each) => weighted(each, earlier.get(at), owned));
  });
  const tools = leaf.tools_hash === null ? [] : (trajectory.tools[leaf.tools_hash] ?? []);
  return {
    messages,
    tools: tools.map(toChatTool),
    reward: trajectory.reward,
    trajectory_id: trajectory.trajectory_id,
    rollout_id: trajectory.rollout_id,
    group_id: trajectory.group.id,
    sample_index: trajectory.group.sample_index,
    agent: leaf.agent,
    call_id: leaf.call_id,
  };
}

/** Weight 1 for a turn of the policy's own that no earlier row has taken. */
function weighted(message: RowMessage, callId: string | undefined, owned: Set<string>): RowMessage {
  if (message.role !== "assistant") return message;
  const mine = callId !== undefined && !owned.has(callId);
  if (mine) owned.add(callId);
  return { ...message, weight: mine ? 1 : 0 };
}
