/**
 * ATIF, Harbor's Agent Trajectory Interchange Format: one document a line, what a person reads of a run, with token ids
 * and logprobs beside the steps that may be trained. It has no mask, so a call that may not be trained whole stands
 * there without ids. Sub-agents are embedded documents.
 */
import { z } from "zod";
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import { standingOf } from "../reconstruct/index.ts";
import { defineExporter, type ExportOptions, type ExportReport } from "./exporter.ts";
import { toolsOf } from "./rows/row-calls.ts";
import { rowsOf } from "./rows/rows.ts";
import { type WholeTurn, wholeTurns } from "./rows/whole-turns.ts";
import { type AtifStep, toAtifSteps } from "./shapes/atif-steps.ts";
import { toChatTool } from "./shapes/chat-messages.ts";
import { leaveOutRollout } from "./shapes/left-out.ts";

export const atif = defineExporter({
  name: "atif",
  title: "ATIF documents: steps with messages, tool calls, observations; token ids and logprobs in their metrics",
  objective: "any",
  extension: "jsonl",
  docs: {
    alignment: "D",
    rows: "One document a rollout, sub-agents embedded in it. Every delivered turn is a step; those that may be trained have `prompt_token_ids`, `completion_token_ids` and `logprobs`. What a later context repeats is marked `is_copied_context`. The reward is in `extra`.",
    loader: null,
    proof: { how: "trainer", by: "harbor 0.25.0" },
  },
  options: z.strictObject({ atif_version: z.enum(["1.8", "1.7"]).default("1.8").describe("which version of ATIF the documents say") }),
  async *write(source, options, report) {
    for await (const trajectory of source.trajectories()) {
      const document = toDocument(trajectory, options, report);
      if (document === null) leaveOutRollout(report, "no_calls");
      else {
        report.rows++;
        yield JSON.stringify(document);
      }
    }
  },
});

type AtifOptions = ExportOptions<{ atif_version: "1.8" | "1.7" }>;

/** null: nothing was said in it. */
function toDocument(trajectory: Trajectory, options: AtifOptions, report: ExportReport): Record<string, unknown> | null {
  const turns = wholeTurns(rowsOf(trajectory, options, report), report);
  const version = `ATIF-v${options.own.atif_version}`;
  const documents = groupByAgent(trajectory).flatMap((calls) => toAgentDocument(calls, trajectory, turns, version));
  const [main, ...others] = documents;
  if (main === undefined) return null;
  const { status, rollout_id, task, group } = trajectory;
  const { reward } = standingOf(trajectory, options);
  return {
    ...main,
    trajectory_id: trajectory.trajectory_id,
    extra: { reward, status, rollout_id, task_id: task.id, group_id: group.id, sample_index: group.sample_index },
    ...(others.length > 0 && { subagent_trajectories: others }),
  };
}

/** In the order of each one's first call; those that were given the task are first. */
function groupByAgent({ calls, lead_agents }: Trajectory): CallRecord[][] {
  const agents = new Map<string, CallRecord[]>();
  for (const call of calls) agents.set(call.agent, [...(agents.get(call.agent) ?? []), call]);
  return [...agents].sort(([a], [b]) => Number(lead_agents.includes(b)) - Number(lead_agents.includes(a))).map(([, group]) => group);
}

function toAgentDocument(
  calls: CallRecord[],
  trajectory: Trajectory,
  turns: Map<string, WholeTurn>,
  schema_version: string,
): Record<string, unknown>[] {
  const steps = toAtifSteps(calls, trajectory, turns);
  const last = calls.at(-1);
  if (steps.length === 0 || last === undefined) return [];
  const { harness, session_id, trajectory_id } = trajectory;
  const tools = toolsOf(last, trajectory);
  return [
    {
      schema_version,
      session_id,
      trajectory_id: `${trajectory_id}/${last.agent}`,
      agent: {
        name: harness.name ?? last.agent,
        version: harness.version ?? "unknown",
        ...(last.engine_model !== null && { model_name: last.engine_model }),
        ...(tools.length > 0 && { tool_definitions: tools.map(toChatTool) }),
        extra: { agent: last.agent },
      },
      steps,
      final_metrics: totals(steps),
    },
  ];
}

/** Sums of what the engine reported; absent where one step's count is unknown. */
function totals(steps: AtifStep[]): Record<string, number> {
  const metrics = steps.flatMap((step) => (step.llm_call_count === 1 ? [step.metrics ?? {}] : []));
  const out: Record<string, number> = { total_steps: steps.length };
  for (const name of ["prompt_tokens", "completion_tokens", "cached_tokens"] as const) {
    const counts = metrics.map((each) => each[name]).filter((count) => count !== undefined);
    if (counts.length === metrics.length) out[`total_${name}`] = counts.reduce((sum, count) => sum + count, 0);
  }
  return out;
}
