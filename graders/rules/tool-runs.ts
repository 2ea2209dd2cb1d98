/** Rules on what services of a task ran, by the relay's own record. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import type { ToolRun, Trajectory } from "../../base/schema/trajectory.ts";
import { holdAtAnyLength } from "./condition.ts";
import type { RuleResult } from "./rule-verdict.ts";
import { firstOutOfOrder, fitting, ToolPattern } from "./tool-pattern.ts";

const RunPattern = ToolPattern.extend({
  server: z.string().optional().describe("the server of tools; left out: any"),
  ok: z.boolean().optional().describe("whether the service did it; left out: either"),
});
type RunPattern = z.infer<typeof RunPattern>;

export const RunPatterns = z.array(RunPattern).max(100).default([]);

export type RunRules = { ran: RunPattern[]; ran_not: RunPattern[]; ran_order: RunPattern[]; unasked: "allow" | "refuse" };

/** Throws `grader_error` where the record does not hold all that ran. `trajectory`: undefined where there was no agent. */
export async function runRules(rules: RunRules, trajectory: Trajectory | undefined, signal: AbortSignal): Promise<RuleResult[]> {
  const { ran, ran_not, ran_order, unasked } = rules;
  if (ran.length + ran_not.length + ran_order.length === 0 && unasked === "allow") return [];
  const runs = runsOf(trajectory);
  const results: RuleResult[] = [];
  for (const pattern of ran) {
    const fits = await runsThatFit(pattern, runs, signal);
    results.push({ name: `ran ${pattern.tool}`, holds: fits.includes(true), why: "no service ran it like this" });
  }
  for (const pattern of ran_not) {
    const at = (await runsThatFit(pattern, runs, signal, holdAtAnyLength)).findIndex((fit) => fit !== false);
    results.push({ name: `ran not ${pattern.tool}`, holds: at === -1, why: `run ${at + 1}: ${shownRun(runs[at])}` });
  }
  if (ran_order.length > 0) {
    const missing = await firstOutOfOrder(ran_order, (pattern) => runsThatFit(pattern, runs, signal));
    results.push({ name: "ran in order", holds: missing === null, why: `after those before it, ${missing} did not run` });
  }
  if (unasked === "refuse") {
    const at = runs.findIndex((run) => run.unasked);
    results.push({ name: "nothing unasked", holds: at === -1, why: `no model asked for run ${at + 1}: ${shownRun(runs[at])}` });
  }
  return results;
}

function runsOf(trajectory: Trajectory | undefined): readonly ToolRun[] {
  if (trajectory === undefined) return [];
  const { tool_runs, fidelity } = trajectory;
  if (tool_runs === undefined)
    throw new AlidadeError("grader_error", "ran, ran_not, ran_order and unasked need servers of tools: the task has no environment.tools");
  const lost = fidelity.damaged.find(({ call_id }) => call_id === null);
  if (lost) throw new AlidadeError("grader_error", `what ran is not known, because the session's log is damaged: ${lost.reason}`);
  return tool_runs;
}

/** null where it is not known: a run without a result may have done it. */
async function runsThatFit(
  pattern: RunPattern,
  runs: readonly ToolRun[],
  signal: AbortSignal,
  held?: typeof holdAtAnyLength,
): Promise<(boolean | null)[]> {
  const calls = runs.map(({ tool, arguments: text }) => ({ name: tool, arguments: text === "" ? "{}" : text, kind: "function" as const }));
  const fits = await fitting(pattern, calls, signal, held);
  return fits.map((fit, index) => both(fit, endsAs(pattern, runs[index] as ToolRun)));
}

function endsAs({ server, ok }: RunPattern, run: ToolRun): boolean | null {
  if (server !== undefined && server !== run.server) return false;
  if (ok === undefined) return true;
  if (run.outcome === "unknown") return null;
  // A service that broke off may have done it before.
  if (run.outcome === "failed") return ok ? null : true;
  return ok === (run.outcome === "ok");
}

function both(one: boolean | null, other: boolean | null): boolean | null {
  if (one === false || other === false) return false;
  return one === null || other === null ? null : true;
}

function shownRun(run: ToolRun | undefined): string {
  return run === undefined ? "" : `${run.server} ${run.tool} ${run.arguments}`.slice(0, 200);
}
