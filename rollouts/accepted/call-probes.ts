/** Wrong ways to a task whose known solution is calls of tools, made out of its own calls. None may earn more than no call. */
import type { AdmissionReason, ReachScan } from "../../base/schema/admission.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { Task, ToolCallOrder } from "../../base/schema/task.ts";
import { browserProbe } from "./browser-keys.ts";

export type CallProbe = { name: string; calls: readonly ToolCallOrder[] };

export const pastRelay = "write past the relay";

/** Bounds what a check costs: each takes a sandbox with services of its own. */
const mostOneMore = 3;

/** Known calls with wrong ones behind them, and the known calls twice. */
export function callProbes({ gold_calls = [], bad_calls = {} }: Pick<Task, "gold_calls" | "bad_calls">): CallProbe[] {
  const known = new Set(gold_calls.map((call) => hashOf(call)));
  const more = Object.entries(bad_calls)
    .map(([name, calls]) => ({ name: `one more write: ${name}`, others: calls.filter((call) => !known.has(hashOf(call))) }))
    .filter(({ others }) => others.length > 0)
    .slice(0, mostOneMore);
  const twice = { name: "the right calls twice", calls: [...gold_calls, ...gold_calls] };
  return [...more.map(({ name, others }) => ({ name, calls: [...gold_calls, ...others] })), twice];
}

/** `differs`: the probe left other rows than the known calls. Else it is another way to the same state, which may earn. */
export type ProbeOutcome = { name: string; reward: number | null; differs: boolean };

export function againstCallProbes(outcomes: readonly ProbeOutcome[], baseline: number | null): AdmissionReason[] {
  return outcomes
    .filter(({ reward, differs }) => differs && reward !== null && reward > (baseline ?? 0))
    .map(({ name, reward }) => ({ code: "hackable", message: `${name} earns ${reward}, and no calls ${baseline}: ${cureOf(name)}` }));
}

function cureOf(name: string): string {
  if (name === pastRelay) return "keep the service out of the agent's network (network: apart), or grade what the relay saw (ran)";
  if (name === browserProbe) return "let no key lead to a script in the page: keep to the browser and the policy of environment.display";
  return "the state differs from that of the known calls, so compare the rest of it (state: unchanged, only)";
}

export function againstReach({ open, sockets }: ReachScan): AdmissionReason[] {
  if (open.length + sockets.length === 0) return [];
  const found = [...open.map((port) => `the port ${port}`), ...sockets.map((name) => `the socket ${name}`)].join(", ");
  const message = `a scan from the agent's sandbox finds ${found}: say network: apart of the service, and expose what the agent is to reach`;
  return [{ code: "hackable", message }];
}
