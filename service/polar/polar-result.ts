/** A result as Polar's SessionResult. Which tokens are trained is said by `reconstruct/`. */

import { readJson } from "../../base/schema/read-json.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { callsOfRow, inputOf, outputOf, toolsOf } from "../../exporters/rows/index.ts";
import { toChatMessages, toChatTool } from "../../exporters/shapes/index.ts";
import { type FlatRow, responseOnly, selectRows } from "../../reconstruct/index.ts";
import { type Blobs, getPacked } from "../blobs/index.ts";
import { enoughStand, type ResultRow, type SetSpec } from "../ledger/index.ts";
import { metadataOf } from "./polar-request.ts";

/** What a bridge may read of the budget that ended an agent whose work was graded all the same. */
const agentTimeout = { status: "timeout", timeout_source: "agent", timeout_stage: "exec" };
const trainedTimeout = { reason: "agent_timeout", trainable: true, masked: false };

/** Throws what reading its trajectory throws. */
export async function sessionResult(blobs: Blobs, task_id: string, row: ResultRow, { labels, early_stop }: SetSpec): Promise<object> {
  const isOver = row.state === "completed";
  const isLate = isOver && row.stop_reason === "harness_timeout";
  const status = isLate ? "TIMEOUT" : isOver ? "COMPLETED" : "ERROR";
  const error = isOver || row.error === null ? null : `${row.error.code}: ${row.error.message}`;
  const text = isOver && row.payload !== null ? await getPacked(blobs, row.payload) : null;
  const traces = text === null ? [] : tracesOf(Trajectory.parse(readJson(text)), labels.builder, isLate);
  const stopped = isStopped(row, early_stop) ? stoppedEarly(early_stop) : {};
  const { rollout_id, attempt, policies, stop_reason, mask_reason, reward, components } = row;
  return {
    session_id: rollout_id,
    task_id,
    status,
    trajectory: { status, traces, error, metadata: { record_count: row.turns, ...(isLate && { agent_result: agentTimeout }), ...stopped } },
    timing: timingOf(row.times),
    node_id: null,
    error,
    metadata: {
      ...metadataOf(labels),
      ...stopped,
      alidade: { rollout_id, attempt, policies, stop_reason, mask_reason, reward, components },
    },
  };
}

/** It was cancelled because enough results of its group stand. */
function isStopped({ state, error }: ResultRow, early_stop: number | null): early_stop is number {
  return state === "cancelled" && early_stop !== null && error?.message === enoughStand(early_stop);
}

/** What a bridge may read of a session that ended so: it stands for nothing in the loss. */
function stoppedEarly(early_stop: number): object {
  const early_stop_reason = "minimum_usable_sessions_reached";
  return { early_stop_cancelled: true, fully_masked: true, early_stop_reason, early_stop_min_usable_sessions: early_stop };
}

function tracesOf(trajectory: Trajectory, builder: string | undefined, isLate: boolean): object[] {
  const { rows } = selectRows(trajectory, { strategy: builder === "per_request" ? "per-call" : "strict" });
  return [...rows].filter(({ dummy }) => !dummy).map((row) => traceOf(row, trajectory, isLate));
}

function traceOf(row: FlatRow, trajectory: Trajectory, isLate: boolean): object {
  const { prompt_ids, response_ids, mask, logprobs } = responseOnly(row);
  const calls = callsOfRow(row, trajectory);
  const [first, last] = [calls[0], calls.at(-1)];
  const prompt = first === undefined ? [] : inputOf(first, trajectory);
  const said = last === undefined ? [] : [...inputOf(last, trajectory).slice(prompt.length), ...outputOf(last, trajectory)];
  return {
    prompt_ids,
    response_ids,
    loss_mask: mask,
    response_logprobs: logprobs,
    prompt_messages: prompt.flatMap(toChatMessages),
    response_messages: said.flatMap(toChatMessages),
    tools: toolsOf(first, trajectory).map(toChatTool),
    finish_reason: last?.finish_reason ?? null,
    reward: row.reward,
    metadata: {
      ...(isLate && { training_filter: trainedTimeout }),
      alidade: { agent: row.agent, row_index: row.row_index, row_count: row.row_count, policy_version: row.policy_version },
    },
  };
}

/** Only of stages that were begun and ended. Polar's models refuse a name that they do not know, and the older ones know these four. */
function timingOf({ queued, init, run, post, done }: Record<string, number>): Record<string, number> {
  const lengths = { register_to_init_queue_ms: [queued, init], init_ms: [init, run], run_ms: [run, post], postrun_ms: [post, done] };
  return Object.fromEntries(
    Object.entries(lengths).flatMap(([name, [from, to]]) =>
      from === undefined || to === undefined ? [] : [[name, Math.max(0, to - from)]],
    ),
  );
}
