/**
 * Restore undoes what the harness's serialiser did to a turn that we emitted: renamed ids, re-serialised arguments,
 * trimmed or dropped white space, split messages. A turn is recognised by the tool-call ids that we minted, else by
 * our carrier, else by its text; where it says something else than we said it was edited, and stays as it was sent.
 */
import { fromCarrier } from "../dialects/carrier.ts";
import { canonicalJson, fromToolCallId } from "../schema/ids.ts";
import { type Message, type Part, type ToolCallPart, textOf, toolCallsOf } from "../schema/message.ts";
import type { Restored, SessionSpec } from "../schema/session-log.ts";
import { type Call, normalText } from "./call.ts";
import type { Session } from "./session.ts";

export type RestoreResult = { messages: Message[]; restored: Restored[]; parent: Call | null };

type Policy = SessionSpec["restore"];

/** The conversation as the engine should get it, what was put back, and the call whose turn is the last one known. */
export function restore(session: Session, messages: Message[]): RestoreResult {
  const out: Message[] = [];
  const restored: Restored[] = [];
  let parent: Call | null = null;
  for (let start = 0; start < messages.length; ) {
    const message = messages[start] as Message;
    if (message.role !== "assistant") {
      out.push(withEngineIds(session, message));
      start++;
      continue;
    }
    const found = restoreRun(session, messages, start);
    for (const turn of found.turns) {
      if (turn.record) restored.push({ ...turn.record, message_index: out.length });
      if (turn.call) parent = turn.call;
      out.push(turn.message);
    }
    start = found.end;
  }
  return { messages: out, restored, parent };
}

type RestoredTurn = { message: Message; call: Call | null; record: Omit<Restored, "message_index"> | null };

/**
 * A run of assistant messages may be one turn of ours that the harness split, so the whole run is tried first, then
 * each message on its own.
 */
function restoreRun(session: Session, messages: Message[], start: number): { turns: RestoredTurn[]; end: number } {
  let end = start;
  while (messages[end]?.role === "assistant") end++;
  const run = messages.slice(start, end);
  if (run.length > 1) {
    const whole = restoreTurn(session, { role: "assistant", parts: run.flatMap((message) => message.parts) });
    if (whole.record && whole.record.status !== "edited") return { turns: [whole], end };
  }
  return { turns: run.map((message) => restoreTurn(session, message)), end };
}

function restoreTurn(session: Session, sent: Message): RestoredTurn {
  const recognised = recognise(session, sent);
  const said = recognised?.call.turn?.message;
  if (!recognised || !said || session.spec.restore === "off")
    return { message: withEngineIds(session, sent), call: recognised?.call ?? null, record: null };
  const { call, evidence } = recognised;
  const comparison = compare(call, said, sent, session.spec.restore);
  const record = { from_call_id: call.id, evidence, status: comparison.status, differences: comparison.differences };
  return { message: comparison.status === "edited" ? withEngineIds(session, sent) : comparison.message, call, record };
}

function recognise(session: Session, sent: Message): { call: Call; evidence: Restored["evidence"] } | null {
  for (const part of toolCallsOf(sent)) {
    const call = session.calls.get(fromToolCallId(part.id)?.call_id ?? "");
    if (call) return { call, evidence: "tool_call_id" };
  }
  for (const part of sent.parts) {
    const call = part.type === "reasoning" && part.carrier ? session.calls.get(fromCarrier(part.carrier) ?? "") : undefined;
    if (call) return { call, evidence: "carrier" };
  }
  // Without text there is nothing to recognise: an empty turn is nobody's in particular.
  const text = normalText(sent);
  const call = text === "" || toolCallsOf(sent).length > 0 ? undefined : session.byText.get(text);
  return call && toolCallsOf(call.turn?.message ?? sent).length === 0 ? { call, evidence: "content" } : null;
}

type Comparison = { status: Restored["status"]; differences: string[]; message: Message };

/** What differs between the turn that we said and the one that came back, and the message to go on with. */
function compare(call: Call, said: Message, sent: Message, policy: Policy): Comparison {
  const differences: string[] = [];
  const edited = (what: string): Comparison => ({ status: "edited", differences: [what], message: sent });

  const saidCalls = toolCallsOf(said);
  const sentCalls = toolCallsOf(sent);
  if (saidCalls.length !== sentCalls.length) return edited("tool_calls");
  for (const [index, sentCall] of sentCalls.entries()) {
    const same = sameToolCall(saidCalls[index] as ToolCallPart, sentCall, call.id, index);
    if (same === "edited") return edited("arguments");
    if (same === "reserialised") differences.push("arguments");
  }

  const saidText = textOf(said);
  const sentText = textOf(sent);
  if (saidText !== sentText) {
    if (saidText.trim() !== sentText.trim()) return edited("text");
    differences.push("white_space");
  }

  const saidReasoning = reasoningOf(said);
  const sentReasoning = reasoningOf(sent);
  const dropped = saidReasoning !== "" && sentReasoning === "";
  if (sentReasoning !== "" && saidReasoning.trim() !== sentReasoning.trim()) return edited("reasoning");
  if (saidReasoning !== sentReasoning && !dropped) differences.push("reasoning_white_space");
  // A harness that dropped reasoning meant it: the context of a deployment without us would not have it either.
  if (dropped) differences.push(policy === "full" ? "reasoning_restored" : "reasoning_dropped");

  const parts: Part[] = dropped && policy !== "full" ? said.parts.filter((part) => part.type !== "reasoning") : said.parts;
  return { status: differences.length === 0 ? "identical" : "restored", differences, message: { role: "assistant", parts } };
}

function sameToolCall(said: ToolCallPart, sent: ToolCallPart, callId: string, index: number): "same" | "reserialised" | "edited" {
  const ours = fromToolCallId(sent.id);
  if (said.name !== sent.name || (ours !== null && (ours.call_id !== callId || ours.index !== index))) return "edited";
  if (sent.kind === "custom" && said.kind !== "custom") return customInput(said.arguments) === sent.arguments ? "same" : "edited";
  if (said.arguments === sent.arguments) return "same";
  const saidValue = parsed(said.arguments);
  const sentValue = parsed(sent.arguments);
  return saidValue !== undefined && sentValue !== undefined && canonicalJson(saidValue) === canonicalJson(sentValue)
    ? "reserialised"
    : "edited";
}

/** A freeform tool is shown to the model as a function with one string, `input`. */
function customInput(rawArguments: string): string | null {
  const value = parsed(rawArguments);
  const input = value !== null && typeof value === "object" && "input" in value ? value.input : null;
  return typeof input === "string" ? input : rawArguments;
}

/** Results and foreign turns name calls by the ids that we minted; some templates print ids, so the engine gets its own. */
function withEngineIds(session: Session, message: Message): Message {
  if (!message.parts.some((part) => part.type === "tool_result" || part.type === "tool_call")) return message;
  const engineId = (id: string): string => {
    const ours = fromToolCallId(id);
    const said = ours && session.turnOf(ours.call_id);
    return (said && toolCallsOf(said.message)[ours.index]?.id) || id;
  };
  return {
    ...message,
    parts: message.parts.map((part) =>
      part.type === "tool_result"
        ? { ...part, call_id: engineId(part.call_id) }
        : part.type === "tool_call"
          ? { ...part, id: engineId(part.id) }
          : part,
    ),
  };
}

function reasoningOf(message: Message): string {
  return message.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
