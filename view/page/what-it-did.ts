/** Says in one line what a sample did, for its card on the group's page. */
import { textOf, toolCallsOf } from "../../base/schema/message.ts";
import type { CallRecord, Trajectory } from "../../base/schema/trajectory.ts";

/** Turns that are named. The card links to the rest. */
const mostNamed = 3;
const longest = 48;

/** `from`: the first turn to tell, counted from 1. Only turns of the lead agents count. null: there are none. */
export function whatItDid({ calls, messages, lead_agents }: Trajectory, from: number): string | null {
  const turns = calls.slice(from - 1).filter(({ agent, request_class }) => lead_agents.includes(agent) && request_class === "main");
  if (turns.length === 0) return null;
  const named = turns.slice(0, mostNamed).map((call) => stepOf(call, messages));
  const left = turns.length - named.length;
  return `${named.join(" → ")}${left === 0 ? "" : ` → ${left.toLocaleString("en")} more ${left === 1 ? "turn" : "turns"}`}`;
}

/** Its tool calls, else what it said, else why it said nothing. */
function stepOf({ output, error, outcome }: CallRecord, messages: Trajectory["messages"]): string {
  const message = output === null ? undefined : messages[output];
  if (message === undefined) return (error?.code ?? outcome).replaceAll("_", " ");
  const [first, ...others] = toolCallsOf(message);
  if (first === undefined) return `“${cut(textOf(message)) || "nothing"}”`;
  const more = others.length === 0 ? "" : ` and ${others.length} more ${others.length === 1 ? "call" : "calls"}`;
  return `${cut(`${first.name} ${mainArgument(first.arguments)}`)}${more}`;
}

/** Returns the first text among the arguments, which mostly names a file or a command. */
function mainArgument(written: string): string {
  const begin = written.slice(0, 400);
  return /:\s*"([^"\\]*)/.exec(begin)?.[1] ?? begin;
}

function cut(text: string): string {
  const line = text.slice(0, 400).replace(/\s+/g, " ").trim();
  return line.length <= longest ? line : `${line.slice(0, longest).toWellFormed()}…`;
}
