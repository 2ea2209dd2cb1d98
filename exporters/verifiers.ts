/**
 * verifiers: one `WireTrace` a line. Each row is a chain of message nodes of its own, from its first message to its last
 * turn: verifiers shares a prefix between branches by message, our tree by token, and only the second is always true.
 * What a row does not train has a mask of false in it, so that each sampled token is trained in one branch.
 */

import { z } from "zod";
import type { Message, Tool, Usage } from "../base/schema/message.ts";
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import { schemaAsWritten } from "../base/wire/tool-schema.ts";
import { type FlatRow, type RowSupport, turnsOf } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { rolloutComponents } from "./rows/rollout-components.ts";
import { callsOfRow, inputOf, outputOf, toolsOf } from "./rows/row-calls.ts";
import { keptSets, supportWithin } from "./rows/support.ts";
import { toChatMessages } from "./shapes/chat-messages.ts";
import { scoredRows } from "./shapes/scored-rows.ts";

export const verifiers = defineExporter({
  name: "verifiers",
  title: "verifiers WireTrace: message nodes with token_ids, mask and compact logprobs",
  objective: "rl",
  extension: "jsonl",
  saysSupport: true,
  docs: {
    alignment: "E",
    rows: "One line a rollout, with all its branches. A rollout that trains nothing is a line with all masks false.",
    pictures:
      "a trace of verifiers 0.4 has pictures only in its messages. prime-rl (August 2026) reads pixels from a field that this version does not have. `prime-rl` has pictures.",
    support: "`sampling_mask` of each sampled node: the ids at the places that are trained, as verifiers puts them there itself",
    loader: "alidade.loaders.verifiers",
    proof: { how: "trainer", by: "verifiers 0.4.0" },
  },
  options: z.strictObject({ kept_sets: keptSets }),
  async *write(source, options, report) {
    for await (const trajectory of source.trajectories()) {
      const trace = new TraceWriter(trajectory);
      for (const row of scoredRows(trajectory, options, report, { readsSupport: options.own.kept_sets === "train" })) trace.add(row);
      if (trace.isEmpty) continue;
      report.rows++;
      yield JSON.stringify(trace.done());
    }
  },
});

type MessageNode = Record<string, unknown> & { parent: number | null };

class TraceWriter {
  readonly #trajectory: Trajectory;
  readonly #nodes: MessageNode[] = [];
  readonly #calls: Record<string, unknown>[] = [];
  #reward: number | null = null;

  constructor(trajectory: Trajectory) {
    this.#trajectory = trajectory;
  }

  get isEmpty(): boolean {
    return this.#nodes.length === 0;
  }

  add(row: FlatRow): void {
    this.#reward = row.reward;
    const calls = callsOfRow(row, this.#trajectory);
    let before: CallRecord | null = null;
    let parent: number | null = null;
    let start = 0;
    for (const [index, turn] of turnsOf(row).entries()) {
      const call = calls[index] as CallRecord;
      const context = inputOf(call, this.#trajectory).slice(before === null ? 0 : before.input.length + 1);
      parent = this.#addContext(parent, context, row.token_ids.slice(start, turn.prompt_ids.length), call);
      parent = this.#addTurn(parent, call, turn, supportWithin(row, turn.prompt_ids.length, turn.token_ids.length));
      start = turn.prompt_ids.length + turn.token_ids.length;
      before = call;
    }
    if (start < row.token_ids.length) this.#addContext(parent, this.#ofDummy(), row.token_ids.slice(start), this.#trajectory.calls[0]);
  }

  /** Adds the messages of the input. Token boundaries between them may be unknown, so the last message gets all tokens. */
  #addContext(parent: number | null, messages: Message[], token_ids: number[], call: CallRecord | undefined): number | null {
    const wire = messages.flatMap(toWireMessages);
    if (wire.length === 0 && token_ids.length === 0) return parent;
    for (const [index, message] of (wire.length > 0 ? wire : [{ role: "user", content: "" }]).entries()) {
      const tokens = index >= wire.length - 1 ? token_ids : [];
      this.#nodes.push({
        parent,
        ...(parent === null ? { tools: toolsOf(call, this.#trajectory).map(toWireTool) } : {}),
        message,
        sampled: false,
        timestamp: call === undefined ? 0 : call.times.begun / 1000,
        token_ids: tokens,
        mask: tokens.map(() => false),
        logprobs: [],
      });
      parent = this.#nodes.length - 1;
    }
    return parent;
  }

  #addTurn(parent: number | null, call: CallRecord, turn: ReturnType<typeof turnsOf>[number], support: RowSupport[]): number {
    const [message] = outputOf(call, this.#trajectory).flatMap(toWireMessages);
    this.#nodes.push({
      parent,
      message: message ?? { role: "assistant", content: "" },
      sampled: true,
      timestamp: (call.times.finished ?? call.times.begun) / 1000,
      token_ids: turn.token_ids,
      mask: turn.mask.map((mask) => mask === 1),
      logprobs: turn.logprobs.filter((_, at) => turn.mask[at] === 1),
      ...(support.length > 0 && { support }),
    });
    this.#calls.push(toModelCall(call, this.#nodes.length - 1));
    return this.#nodes.length - 1;
  }

  #ofDummy(): Message[] {
    const first = this.#trajectory.calls[0];
    return first === undefined ? [] : inputOf(first, this.#trajectory);
  }

  done(): Record<string, unknown> {
    const { trajectory_id, task, harness, status, stop_reason, rollout_id, group, session_id } = this.#trajectory;
    return {
      id: trajectory_id,
      task: { type: "alidade", data: { id: task.id } },
      agent: { config: { harness: { id: harness.name ?? "alidade" } } },
      nodes: this.#nodes,
      calls: this.#calls,
      rewards: { reward: { score: this.#reward, weight: 1 } },
      // Weights are in the reward already.
      metrics: rolloutComponents(this.#trajectory),
      info: { alidade: { session_id, rollout_id, group_id: group.id, sample_index: group.sample_index, harness } },
      is_completed: true,
      // A rollout cut off by its own budget was scored like any other.
      ok: status !== "failed" && status !== "cancelled",
      stop_condition: stop_reason,
    };
  }
}

function toModelCall(call: CallRecord, node: number): Record<string, unknown> {
  const { usage, finish_reason, sampling, times } = call;
  return {
    node,
    model: call.engine_model,
    sampling: { temperature: sampling.temperature ?? null, top_p: sampling.top_p ?? null, max_tokens: sampling.max_tokens ?? null },
    finish_reason: finish_reason === "stop" || finish_reason === "length" || finish_reason === "tool_calls" ? finish_reason : null,
    ...(usage === null ? {} : toUsage(usage)),
    time: { start: times.begun / 1000, end: (times.finished ?? times.begun) / 1000 },
  };
}

/** verifiers counts cached tokens apart from the prompt's others; a usage with unknown counts is none. */
function toUsage({ prompt_tokens, cached_tokens, sampled_tokens, reasoning_tokens }: Usage): Record<string, unknown> {
  if (prompt_tokens === null || sampled_tokens === null) return {};
  return {
    usage: {
      prompt_tokens: prompt_tokens - (cached_tokens ?? 0),
      completion_tokens: sampled_tokens,
      cached_input_tokens: cached_tokens,
      reasoning_tokens,
    },
  };
}

/** verifiers keeps a tool call flat, its arguments as the model wrote them. */
function toWireMessages(message: Message): Record<string, unknown>[] {
  return toChatMessages(message).map(({ role, content, reasoning_content, tool_calls, tool_call_id }) => ({
    role: role === "developer" ? "system" : role,
    content: content ?? (role === "assistant" ? null : ""),
    ...(reasoning_content === undefined ? {} : { reasoning_content }),
    ...(tool_call_id === undefined ? {} : { tool_call_id }),
    ...(tool_calls === undefined
      ? {}
      : {
          tool_calls: tool_calls.map((call) =>
            call.type === "custom"
              ? { id: call.id, type: "custom", name: call.custom.name, arguments: call.custom.input }
              : { id: call.id, type: "function", name: call.function.name, arguments: call.function.arguments },
          ),
        }),
  }));
}

function toWireTool(tool: Tool): Record<string, unknown> {
  const { name, description, kind, strict } = tool;
  return {
    type: kind,
    name,
    description: description ?? "",
    parameters: schemaAsWritten(tool) ?? {},
    ...(strict === undefined ? {} : { strict }),
  };
}
