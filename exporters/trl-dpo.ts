/**
 * TRL's DPOTrainer: the first turn in which two rollouts of one prompt differ. TRL puts every token of a completion in
 * its loss, so that a whole rollout, tool results and all, is nothing that it could be given.
 */

import { parseArguments } from "../base/schema/arguments.ts";
import type { GroupReason } from "../base/schema/reasons/left-out.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { imagesOf, TokenPaths } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { inputOf } from "./rows/row-calls.ts";
import { type RowMessage, toChatMessages } from "./shapes/chat-messages.ts";
import { leaveOutGroup } from "./shapes/left-out.ts";
import { type PreferencePair, pairFacts, pairOptions, pairsOf, type RankedAnswer } from "./shapes/preference-pairs.ts";

export const trlDpo = defineExporter({
  name: "trl-dpo",
  title: "TRL DPO rows: prompt, chosen, rejected (one turn each), with their token ids",
  objective: "sft",
  extension: "jsonl",
  selects: false,
  wholeGroups: true,
  docs: {
    alignment: "none",
    rows: "One line a pair. A group with equal rewards has no pairs. Two rollouts make no pair if their first difference is a tool result. The ids are the sampled ones. They are null if the two prompts had different tokens, or if they had pictures. TRL tokenises the messages itself unless the loader's trainer is used.",
    loader: "alidade.loaders.trl",
    proof: { how: "trainer", by: "trl 1.16.0" },
  },
  options: pairOptions,
  async *write(source, options, report) {
    for await (const group of source.groups())
      for await (const pair of pairsOf(group, options, report)) {
        const row = firstDifference(pair);
        if (typeof row === "string") leaveOutGroup(report, row);
        else {
          report.rows++;
          yield JSON.stringify({ ...row, ...pairFacts(pair) });
        }
      }
  },
});

/** The row, or why there is no turn to compare. */
function firstDifference({ chosen, rejected }: PreferencePair): Record<string, unknown> | GroupReason {
  const at = chosen.messages.findIndex((message, index) => withoutIds(message) !== withoutIds(rejected.messages[index]));
  const [good, bad] = [chosen.messages[at], rejected.messages[at]];
  if (good === undefined || bad === undefined) return "no_difference";
  if (good.role !== "assistant" || bad.role !== "assistant") return "different_observations";
  return {
    prompt: [...chosen.prompt, ...chosen.messages.slice(0, at)].map(toTrl),
    chosen: [toTrl(good)],
    rejected: [toTrl(bad)],
    tools: chosen.tools,
    ...idsOf(turnIds(chosen, at), turnIds(rejected, at)),
  };
}

/** Two rollouts never share the ids of their calls. */
function withoutIds(message: RowMessage | undefined): string {
  return JSON.stringify(message, (key, value: unknown) => (key === "id" || key === "tool_call_id" ? undefined : value));
}

type TurnIds = { prompt_ids: number[]; token_ids: number[] } | null;

function idsOf(chosen: TurnIds, rejected: TurnIds): Record<string, number[] | null> {
  if (chosen === null || rejected === null || chosen.prompt_ids.join() !== rejected.prompt_ids.join())
    return { prompt_ids: null, chosen_ids: null, rejected_ids: null };
  return { prompt_ids: chosen.prompt_ids, chosen_ids: chosen.token_ids, rejected_ids: rejected.token_ids };
}

/** What the engine saw and sampled for the conversation's message at `at`, counted after the prompt. */
function turnIds({ trajectory, row, prompt }: RankedAnswer, at: number): TurnIds {
  const call_id = callOfMessage(trajectory, row.call_id, prompt.length + at);
  const sampled = trajectory.nodes.filter((node) => node.kind === "sampled" && node.call_id === call_id);
  const [last] = sampled.slice(-1);
  const images = imagesOf(trajectory);
  const seesImage = trajectory.calls.some((call) => call.call_id === call_id && call.input.some((id) => images.has(id)));
  if (last === undefined || seesImage) return null;
  const length = sampled.reduce((sum, node) => sum + node.token_ids.length, 0);
  const ids = new TokenPaths(trajectory).nodes(last.node_id).flatMap((node) => node.token_ids);
  return { prompt_ids: ids.slice(0, -length), token_ids: ids.slice(-length) };
}

/** The call that sampled the message: on the path from the leaf to the root, the call whose own input ends there. */
function callOfMessage(trajectory: Trajectory, leaf: string, position: number): string | null {
  const calls = new Map(trajectory.calls.map((call) => [call.call_id, call]));
  for (let call = calls.get(leaf); call !== undefined; call = call.parent_call_id === null ? undefined : calls.get(call.parent_call_id))
    if (inputOf(call, trajectory).flatMap(toChatMessages).length === position) return call.call_id;
  return null;
}

/** Chat templates need an object as a call's arguments; other arguments stay as the model wrote them. */
function toTrl({ weight: _, ...message }: RowMessage): Record<string, unknown> {
  const { tool_calls } = message;
  if (tool_calls === undefined) return { ...message, content: message.content ?? "" };
  const calls = tool_calls.map((call) =>
    call.type === "custom"
      ? call
      : { ...call, function: { ...call.function, arguments: parseArguments(call.function.arguments) ?? call.function.arguments } },
  );
  return { ...message, content: message.content ?? "", tool_calls: calls };
}
