/**
 * `POST /verify` of NeMo Gym's resource servers: the task's row, with the rollout as one response. Servers whose tools need
 * `/seed_session` are no part of it.
 */
import { z } from "zod";
import type { Message } from "../../base/schema/message.ts";
import type { CallRecord, Trajectory } from "../../base/schema/trajectory.ts";
import { outputMessage, type ResponseItem, responseItems, responseTool, withItemIds } from "../../base/wire/response-items.ts";
import { answeredCalls } from "../answer-of.ts";
import { ToldComponents } from "../rules/told-reward.ts";
import type { RemoteForm } from "./remote-form.ts";

/** Servers send the whole row back beside it. */
const Answer = z.looseObject({
  reward: z.number(),
  reward_components: ToldComponents.nullish(),
  mask_sample: z.boolean().nullish(),
  failure_reason: z.string().nullish(),
});

export const nemoGymForm: RemoteForm = {
  name: "nemo-gym",

  async ask({ task, trajectory, data }) {
    const calls = trajectory ? answeredCalls(trajectory) : [];
    const [first] = calls;
    const tools = trajectory && first ? (trajectory.tools[first.tools_hash ?? ""] ?? []).map(responseTool) : [];
    const asked: Message[] = [{ role: "user", parts: [{ type: "text", text: task.instruction }] }];
    const input = trajectory && first ? messagesOf(first.input, trajectory) : asked;
    const output = trajectory ? withItemIds(outputItems(calls, trajectory)) : [];
    return {
      responses_create_params: { input: input.flatMap(responseItems), tools, parallel_tool_calls: true },
      ...data,
      response: {
        id: trajectory?.session_id ?? task.task_id,
        created_at: (first?.times.begun ?? 0) / 1_000,
        model: calls.at(-1)?.engine_model ?? "unknown",
        object: "response",
        parallel_tool_calls: true,
        tool_choice: "auto",
        tools,
        output: output.length > 0 ? output : withItemIds([outputMessage("")]),
      },
    };
  },

  read(answer) {
    const { reward, reward_components, mask_sample, failure_reason } = Answer.parse(answer);
    const says = failure_reason ?? (mask_sample ? "it masks this sample" : null);
    return { reward: mask_sample ? null : reward, components: reward_components ?? {}, says };
  },
};

/** Each turn, with what came between it and the turn before. */
function outputItems(calls: readonly CallRecord[], trajectory: Trajectory): ResponseItem[] {
  return calls.flatMap((call, index) => {
    const context = index === 0 ? [] : newSince(calls[index - 1] as CallRecord, call);
    return messagesOf([...context, call.output ?? ""], trajectory).flatMap(responseItems);
  });
}

/** Message ids. A conversation that does not go on from the turn before, as after a compaction, is new as a whole. */
function newSince(before: CallRecord, { input }: CallRecord): string[] {
  const goesOn = before.input.every((id, at) => input[at] === id);
  return goesOn ? input.slice(before.input.length + 1) : input;
}

function messagesOf(ids: readonly string[], { messages }: Trajectory): Message[] {
  return ids.flatMap((id) => messages[id] ?? []);
}
