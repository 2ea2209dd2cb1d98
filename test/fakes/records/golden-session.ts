/**
 * The session that every exporter is asked to write: a turn with a tool call, tried twice because the first answer's
 * client left; the tool's result and the turn after it under new weights; a sub-agent; a compaction and the turn that
 * goes on from its summary. Its sibling in the group says one turn and fails.
 */

import type { Tool } from "../../../base/schema/message.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { assistant, LogBuilder, recognised, system, thinking, toolCall, toolResult, user } from "./log-builder.ts";

export const goldenTools: Tool[] = [
  {
    name: "bash",
    description: "runs a command",
    parameters: { type: "object", properties: { cmd: { type: "string" } } },
    kind: "function",
  },
];

const v1 = { version: "v1", step: 1 };
const v2 = { version: "v2", step: 2 };

/** Each call's are its own, so that a shifted or swapped one shows: -1, -1.125, -1.25 … for the call with ordinal 1. */
export const goldenLogprobs = (ordinal: number, length: number): number[] => Array.from({ length }, (_, at) => -ordinal - at / 8);

/** Token ids, one a word in the order in which words are first met; 2 ends a turn. */
export function goldenTrajectory(facts: Parameters<typeof reconstruct>[1] = {}): Trajectory {
  const log = named("sesgolden", new LogBuilder());
  const tools = goldenTools;
  const start = [system("be good"), user("fix it")];
  const looks = assistant(thinking("hm"), toolCall("t1", '{"cmd":"ls"}'));
  log.call({ messages: start, says: looks, logprobs: goldenLogprobs(0, 7), tools, delivery: "cut", policy: v1 });
  const first = log.call({ messages: start, says: looks, logprobs: goldenLogprobs(1, 7), tools, policy: v1 });
  log.call({
    agent: "helper",
    request_class: "sub_agent",
    messages: [system("help"), user("count")],
    says: assistant("two"),
    logprobs: goldenLogprobs(2, 2),
    policy: v1,
  });
  const seen = [...start, looks, toolResult("t1", "a.txt")];
  const second = log.call({
    messages: seen,
    says: assistant("found"),
    logprobs: goldenLogprobs(3, 2),
    tools,
    parent: first,
    restored: [recognised(first, 2)],
    policy: v2,
  });
  const whole = [...seen, assistant("found"), user("summarise")];
  const third = log.call({
    request_class: "compaction",
    messages: whole,
    says: assistant("sum up"),
    logprobs: goldenLogprobs(4, 3),
    tools,
    parent: second,
    policy: v2,
  });
  log.call({
    messages: [system("be good"), user("sum up"), user("go on")],
    says: assistant("done"),
    logprobs: goldenLogprobs(5, 2),
    tools,
    parent: third,
    policy: v2,
  });
  const rollout = { scope: "rollout" as const, target: null };
  const values = [
    { ...rollout, name: "tests", value: 0.5, weight: 2 },
    { ...rollout, name: "style", value: null, weight: null },
  ];
  return reconstruct(log.entries, { status: "graded", reward: 1, reward_components: values, group: { size: 2 }, ...facts });
}

export function goldenSibling(facts: Parameters<typeof reconstruct>[1] = {}): Trajectory {
  const log = named("sessibling", new LogBuilder({ rollout_id: "roll2", sample_index: 1 }));
  const logprobs = goldenLogprobs(7, 2);
  log.call({ messages: [system("be good"), user("fix it")], says: assistant("no"), logprobs, tools: goldenTools, policy: v1 });
  return reconstruct(log.entries, { status: "graded", reward: 0, group: { size: 2 }, ...facts });
}

function named(session_id: string, log: LogBuilder): LogBuilder {
  const [opened] = log.entries;
  if (opened?.type === "opened") opened.session_id = session_id;
  return log;
}
