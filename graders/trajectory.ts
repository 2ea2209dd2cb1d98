/**
 * Grades what an agent did by the calls that the proxy recorded, which no agent can change: tools that it must or must not
 * call, their order, budgets and loops.
 */
import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import type { ToolCallPart } from "../base/schema/message.ts";
import { workClasses } from "../base/schema/session-spec.ts";
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import type { Grader } from "./grader.ts";
import { holdAtAnyLength } from "./rules/condition.ts";
import { type RuleResult, ruleVerdict } from "./rules/rule-verdict.ts";
import { firstOutOfOrder, fitting, Patterns } from "./rules/tool-pattern.ts";
import { RunPatterns, runRules } from "./rules/tool-runs.ts";

const TrajectorySpec = z
  .strictObject({
    kind: z.literal("trajectory"),
    must: Patterns.describe("each is called at least once"),
    must_not: Patterns.describe("none is ever called; an argument of any length is looked into"),
    order: Patterns.describe("they are called in this order, with others between them"),
    ran: RunPatterns.describe("each was run by a service at least once"),
    ran_not: RunPatterns.describe("none was run by a service; one that may have run counts as run"),
    ran_order: RunPatterns.describe("services ran them in this order, with others between them"),
    unasked: z.enum(["allow", "refuse"]).default("allow").describe("refuse: no service ran what no model asked for"),
    max_turns: z.number().int().positive().optional().describe("of the main agent"),
    max_tool_calls: z.number().int().nonnegative().optional(),
    max_sampled_tokens: z.number().int().positive().optional(),
    max_repeats: z.number().int().positive().optional().describe("equal calls in a row"),
  })
  .refine(
    ({ unasked, ...spec }) =>
      unasked === "refuse" || Object.values(spec).some((value) => (Array.isArray(value) ? value.length > 0 : typeof value === "number")),
    {
      error:
        "give at least one rule: must, must_not, order, ran, ran_not, ran_order, unasked, max_turns, max_tool_calls, max_sampled_tokens or max_repeats",
    },
  );
type TrajectorySpec = z.infer<typeof TrajectorySpec>;

export const trajectory: Grader<TrajectorySpec> = {
  name: "trajectory",
  title: "The recorded calls: tools, their order, budgets and loops",
  version: "2",
  spec: TrajectorySpec,
  startsFresh: () => false,
  tier: () => "T3",
  misfits: (spec, { tools = [] }) => {
    const names = tools.map(({ name }) => name);
    const known = names.length === 0 ? "the task has no environment.tools" : `name one of ${names.join(", ")}`;
    const rules = (["ran", "ran_not", "ran_order"] as const).flatMap((field) => spec[field].map((rule, at) => ({ field, rule, at })));
    return rules
      .filter(({ rule: { server } }) => server !== undefined && !names.includes(server))
      .map(({ field, rule, at }) => ({ field: `${field}.${at}.server`, message: `is ${rule.server}: ${known}` }));
  },

  async grade(spec, context) {
    const started = performance.now();
    const turns = context.trajectory ? turnsOf(context.trajectory) : [];
    const calls = context.trajectory ? turns.flatMap((turn) => toolCallsOf(turn, context.trajectory as Trajectory)) : [];
    const ran = await runRules(spec, context.trajectory, context.signal);
    const results = numbered([...(await toolRules(spec, calls, context.signal)), ...ran, ...countRules(spec, turns, calls)]);
    const runs = context.trajectory?.tool_runs;
    const evidence = { turns: turns.length, tool_calls: calls.length, ...(runs && { tool_runs: runs.length }) };
    return ruleVerdict("trajectory", results, context, started, evidence);
  },
};

/** Turns of the task's work that reached the harness, in order: what did not was never acted on. */
function turnsOf({ calls }: Trajectory): CallRecord[] {
  const acted = calls.filter(
    ({ output, outcome, other_policy, request_class }) =>
      output !== null && !other_policy && (outcome === "delivered" || outcome === "partial") && workClasses.includes(request_class),
  );
  return acted.toSorted((a, b) => a.ordinal - b.ordinal);
}

function toolCallsOf({ output }: CallRecord, { messages }: Trajectory): ToolCallPart[] {
  return (messages[output ?? ""]?.parts ?? []).filter((part) => part.type === "tool_call");
}

async function toolRules({ must, must_not, order }: TrajectorySpec, calls: ToolCallPart[], signal: AbortSignal): Promise<RuleResult[]> {
  const results: RuleResult[] = [];
  for (const pattern of must) {
    const fits = await fitting(pattern, calls, signal);
    results.push({ name: `must ${pattern.tool}`, holds: fits.includes(true), why: "it was never called like this" });
  }
  for (const pattern of must_not) {
    const fits = await fitting(pattern, calls, signal, holdAtAnyLength);
    // A pattern that an argument keeps from an answer forbids it.
    const at = fits.findIndex((fit) => fit !== false);
    results.push({ name: `must not ${pattern.tool}`, holds: at === -1, why: `call ${at + 1}: ${shown(calls[at])}` });
  }
  if (order.length === 0) return results;
  const missing = await firstOutOfOrder(order, (pattern) => fitting(pattern, calls, signal));
  return [...results, { name: "order", holds: missing === null, why: `after those before it, ${missing} is not called` }];
}

/** Two rules may speak of one tool. */
function numbered(results: RuleResult[]): RuleResult[] {
  return results.map((one, index) => ({ ...one, name: `${index + 1} ${one.name}` }));
}

function countRules(spec: TrajectorySpec, turns: CallRecord[], calls: ToolCallPart[]): RuleResult[] {
  const most = (name: string, limit: number | undefined, count: () => number): RuleResult[] => {
    if (limit === undefined) return [];
    const found = count();
    return [{ name, holds: found <= limit, why: `${found} and not at most ${limit}` }];
  };
  return [
    ...most("max_turns", spec.max_turns, () => turns.filter(({ agent }) => agent === "main").length),
    ...most("max_tool_calls", spec.max_tool_calls, () => calls.length),
    ...most("max_sampled_tokens", spec.max_sampled_tokens, () => turns.reduce((sum, turn) => sum + sampledTokens(turn), 0)),
    ...most("max_repeats", spec.max_repeats, () => longestRun(calls)),
  ];
}

/** Throws where neither tokens nor a count of them is known. */
function sampledTokens({ call_id, sampled_length, usage }: CallRecord): number {
  const tokens = sampled_length ?? usage?.sampled_tokens ?? null;
  if (tokens !== null) return tokens;
  const message = `max_sampled_tokens cannot be held: the engine did not say how many tokens call ${call_id} sampled; use an engine that counts them`;
  throw new AlidadeError("engine_without_token_ids", message);
}

function longestRun(calls: ToolCallPart[]): number {
  let [longest, run, last] = [0, 0, ""];
  for (const { name, arguments: text } of calls) {
    const key = JSON.stringify([name, text]);
    run = key === last ? run + 1 : 1;
    last = key;
    longest = Math.max(longest, run);
  }
  return longest;
}

function shown(call: ToolCallPart | undefined): string {
  return call === undefined ? "" : `${call.name} ${call.arguments}`.slice(0, 200);
}
