/**
 * Grades what an agent did by the calls that the proxy recorded, which no agent can change: tools that it must or must not
 * call, their order, budgets and loops.
 */
import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import { matchesAny } from "../base/files/file-tree.ts";
import type { ToolCallPart } from "../base/schema/message.ts";
import { readJson } from "../base/schema/read-json.ts";
import { workClasses } from "../base/schema/session-spec.ts";
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import type { Grader } from "./grader.ts";
import { Condition, hold, holdAtAnyLength, valueAt } from "./rules/condition.ts";
import { type RuleResult, ruleVerdict } from "./rules/rule-verdict.ts";

const ToolPattern = z.strictObject({
  tool: z
    .string()
    .min(1)
    .max(200)
    // Each star is one more loop over a name that a model made up.
    .regex(/^[^*]*(?:\*[^*]+){0,3}\*?$/, "give a name, or a glob with at most four stars")
    .describe("its name, or a glob such as mcp__*"),
  arguments: z.record(z.string(), Condition).default({}).describe("by name, or by a JSON pointer such as /items/0"),
});
type ToolPattern = z.infer<typeof ToolPattern>;

const Patterns = z.array(ToolPattern).max(100).default([]);

const TrajectorySpec = z
  .strictObject({
    kind: z.literal("trajectory"),
    must: Patterns.describe("each is called at least once"),
    must_not: Patterns.describe("none is ever called; an argument of any length is looked into"),
    order: Patterns.describe("they are called in this order, with others between them"),
    max_turns: z.number().int().positive().optional().describe("of the main agent"),
    max_tool_calls: z.number().int().nonnegative().optional(),
    max_sampled_tokens: z.number().int().positive().optional(),
    max_repeats: z.number().int().positive().optional().describe("equal calls in a row"),
  })
  .refine((spec) => Object.values(spec).some((value) => (Array.isArray(value) ? value.length > 0 : typeof value === "number")), {
    error: "give at least one rule: must, must_not, order, max_turns, max_tool_calls, max_sampled_tokens or max_repeats",
  });
type TrajectorySpec = z.infer<typeof TrajectorySpec>;

export const trajectory: Grader<TrajectorySpec> = {
  name: "trajectory",
  title: "The recorded calls: tools, their order, budgets and loops",
  version: "2",
  spec: TrajectorySpec,
  tier: () => "T3",

  async grade(spec, context) {
    const started = performance.now();
    const turns = context.trajectory ? turnsOf(context.trajectory) : [];
    const calls = context.trajectory ? turns.flatMap((turn) => toolCallsOf(turn, context.trajectory as Trajectory)) : [];
    const results = [...(await toolRules(spec, calls, context.signal)), ...countRules(spec, turns, calls)];
    return ruleVerdict("trajectory", results, context, started, { turns: turns.length, tool_calls: calls.length });
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
  if (order.length === 0) return numbered(results);
  const missing = await firstOutOfOrder(order, calls, signal);
  return numbered([...results, { name: "order", holds: missing === null, why: `after those before it, ${missing} is not called` }]);
}

async function firstOutOfOrder(order: ToolPattern[], calls: ToolCallPart[], signal: AbortSignal): Promise<string | null> {
  let from = 0;
  for (const pattern of order) {
    const found = (await fitting(pattern, calls.slice(from), signal)).indexOf(true);
    if (found === -1) return pattern.tool;
    from += found + 1;
  }
  return null;
}

/** Two rules may speak of one tool. */
function numbered(results: RuleResult[]): RuleResult[] {
  return results.map((one, index) => ({ ...one, name: `${index + 1} ${one.name}` }));
}

/** For each call whether it fits; null where a regular expression was not decided in time. */
async function fitting(
  { tool, arguments: wanted }: ToolPattern,
  calls: ToolCallPart[],
  signal: AbortSignal,
  held: typeof hold = hold,
): Promise<(boolean | null)[]> {
  const globs = [tool.replaceAll("*", "**")];
  const fits: (boolean | null)[] = calls.map(({ name }) => name.length <= longestName && matchesAny(name, globs));
  for (const [place, condition] of Object.entries(wanted)) {
    const open = fits.flatMap((fit, index) => (fit === false ? [] : [index]));
    const values = open.map((index) => valueAt(argumentsOf(calls[index] as ToolCallPart), place.startsWith("/") ? place : `/${place}`));
    for (const [nth, fit] of (await held(condition, values, signal)).entries()) {
      const index = open[nth] as number;
      fits[index] = fit === false ? false : fit === null ? null : (fits[index] ?? null);
    }
  }
  return fits;
}

/** A model may invent any name; APIs allow 64 or 128 characters. */
const longestName = 200;

/** A text is the `input` of a freeform tool; what is no JSON is nothing that a condition can hold. */
function argumentsOf({ arguments: text, kind }: ToolCallPart): unknown {
  if (kind === "custom") return { input: text };
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
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
