/**
 * Which calls are the main agent's. Not every harness marks the requests of its sub-agents (Qwen Code does not), so the record tells
 * them apart: a conversation that begins anew while the main agent's own goes on belongs to another agent.
 */
import { type Call, messageKey } from "../session/call.ts";
import { isWork } from "./is-work.ts";

/** `begunAt`: a place among the lines of the log. */
type BegunAt = { call: Call; begunAt: number };

export type RecordedAgents = {
  /** The first call of each call's conversation, by the call's id. A call goes on from the last turn that its request holds. */
  roots: ReadonlyMap<string, string>;
  /** Ids of the calls of the main agent's own work. */
  main: ReadonlySet<string>;
};

/** `calls`: in the order in which they were begun. */
export function agentsOf(calls: readonly BegunAt[]): RecordedAgents {
  const roots = new Map<string, string>();
  for (const { call } of calls) roots.set(call.id, roots.get(call.begun.parent_call_id ?? "") ?? call.id);
  const marked = calls.filter(({ call: { begun } }) => begun.agent === "main" && isWork(begun.request_class));
  const ofRoot = Map.groupBy(marked, ({ call }) => roots.get(call.id) ?? call.id);
  const lastOfHead = new Map(marked.map((one) => [headOf(one), one.begunAt]));
  const lastOfMain = new Map<string, number>();
  const main = new Set<string>();
  for (const turns of ofRoot.values()) {
    const [first] = turns;
    if (first === undefined || isBeside(first, lastOfMain, lastOfHead)) continue;
    lastOfMain.set(headOf(first), turns.at(-1)?.begunAt ?? 0);
    for (const { call } of turns) main.add(call.id);
  }
  return { roots, main };
}

/**
 * True if the main agent goes on after this first call of a conversation. It may compact its history and begin another one of the same
 * head, so calls of another conversation are its own only where their heads are equal. Maps: the last call of each head.
 */
function isBeside(first: BegunAt, lastOfMain: ReadonlyMap<string, number>, lastOfHead: ReadonlyMap<string, number>): boolean {
  const own = headOf(first);
  return [...lastOfMain].some(([head, last]) => (head === own ? last : (lastOfHead.get(head) ?? 0)) > first.begunAt);
}

/** The system prompt and the tools. */
function headOf({ call: { messages, begun } }: BegunAt): string {
  const [first] = messages;
  return `${begun.tools_hash} ${first?.role === "system" ? messageKey(first) : ""}`;
}
