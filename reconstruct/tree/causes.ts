/**
 * Why a prompt does not continue its parent token for token. The table is read from the top and the first cause that
 * fits is the answer: what the harness did on purpose comes before what a renderer did to the same turn.
 */
import { imageName } from "../../base/media/stored-picture.ts";
import { canonicalArguments } from "../../base/schema/arguments.ts";
import { type Message, type ToolCallPart, textOf, toolCallsOf } from "../../base/schema/message.ts";
import type { Decoded, Restored } from "../../base/schema/session-log.ts";
import { EdgeCause } from "../../base/schema/trajectory.ts";
import type { CallHistory } from "../log/call-history.ts";
import type { Conversations, TriePlace } from "../log/conversations.ts";
import type { Edge } from "./edge.ts";
import { isCleared } from "./is-cleared.ts";

type Facts = {
  call: CallHistory;
  parent: CallHistory;
  decoded: Decoded | null;
  /** First token in which the prompt differs; null where there are no ids. */
  position: number | null;
  places: Conversations;
  edges: Map<string, Edge>;
};

/** The facts, and the turn in which the difference lies: what was sampled, and the copy of it in this request. */
type EdgeEvidence = Facts & { turn: CallHistory | null; sampled: Message | null; copy: Message | null };

const causes: [EdgeCause, (evidence: EdgeEvidence) => boolean][] = [
  // Where the texts agree to the end of the parent's turn, nothing of the conversation can have changed.
  ["retokenised", ({ decoded }) => decoded?.same_text === true],
  ["compacted", isCompacted],
  ["tools_changed", ({ call, parent }) => call.begun.tools_hash !== parent.begun.tools_hash],
  ["system_changed", isSystemChanged],
  ["injected", isInjected],
  ["history_cleared", isHistoryCleared],
  ["turn_dropped", isTurnDropped],
  ["arguments_changed", areArgumentsChanged],
  ["tool_calls_changed", areToolCallsChanged],
  ["edited", isEdited],
  ["reasoning_dropped", isReasoningDropped],
  // The engine cut it out of the text, and its tokens are in the sample.
  ["stop_string", ({ turn }) => typeof turn?.finished?.stop === "string"],
  ["truncated", ({ turn }) => turn?.finished?.finish_reason === "length" || turn?.finished?.finish_reason === "abort"],
  ["arguments_reserialised", isReserialised],
  ["re_rendered", ({ decoded }) => decoded !== null],
];

export function findCause(facts: Facts): EdgeCause {
  // With continuity the whole conversation was rendered anew for this, and may part in an earlier turn than it is about.
  const { continuity } = facts.call.finished ?? {};
  const known = continuity?.mode === "rendered" ? EdgeCause.safeParse(continuity.cause).data : undefined;
  if (known !== undefined && known !== "edited") return known;
  const turn = known === undefined ? turnAt(facts) : facts.parent;
  const evidence = { ...facts, turn, sampled: turn?.finished?.message ?? null, copy: turn === null ? null : copyOf(turn, facts) };
  return causes.find(([, fits]) => fits(evidence))?.[0] ?? "unknown";
}

/**
 * The call where the paths part, in its sample or right after it: the parent, or an ancestor of it. Null where they part
 * before any sample of this chain. Without ids it is taken to be the parent.
 */
function turnAt({ parent, position, places, edges }: Facts): CallHistory | null {
  let turn = parent;
  while (position !== null && position < (places.prompt.get(turn.call_id)?.depth ?? 0)) {
    const before = edges.get(turn.call_id);
    if (before?.parent == null || before.match !== "exact") return null;
    turn = before.parent;
  }
  return turn;
}

/** Where this request repeats `turn`: the message that names it, else the one that stands where its answer belongs. */
function copyOf(turn: CallHistory, { call, places }: Facts): Message | null {
  const named = restoredFrom(call, turn.call_id)?.message_index;
  const before = places.input.get(turn.call_id);
  const after = places.input.get(call.call_id);
  const index = named ?? before?.depth;
  if (index === undefined || after === undefined || index >= after.depth) return null;
  const message = places.messages[places.message_trie.items(after, index)[0] as number] as Message;
  return message.role === "assistant" ? message : null;
}

function restoredFrom(call: CallHistory, callId: string): Restored | undefined {
  return call.begun.restored.find((restored) => restored.from_call_id === callId);
}

/** The history became shorter than what its parent had: it was summarised, cut or rolled back. */
function isCompacted({ call, parent, places }: EdgeEvidence): boolean {
  if (parent.begun.request_class === "compaction") return true;
  const [before, after] = [places.input.get(parent.call_id), places.input.get(call.call_id)];
  return before !== undefined && after !== undefined && after.depth < before.depth;
}

/** Only the leading instructions: a reminder that is put in later is appended, not changed. */
function isSystemChanged({ call, parent, places }: EdgeEvidence): boolean {
  return instructionsOf(call, places) !== instructionsOf(parent, places);
}

function instructionsOf(call: CallHistory, places: Conversations): string {
  const place = places.input.get(call.call_id);
  const leading: number[] = [];
  if (place !== undefined)
    for (const index of places.message_trie.items(place)) {
      const { role } = places.messages[index] as Message;
      if (role !== "system" && role !== "developer") break;
      leading.push(index);
    }
  return leading.join();
}

/**
 * The harness inserted something into the earlier conversation: a reminder inside an earlier message, or a message between
 * two. Messages behind the last turn are no injection, but the next input.
 */
function isInjected({ call, parent, places }: EdgeEvidence): boolean {
  const [before, after] = [places.input.get(parent.call_id), places.input.get(call.call_id)];
  if (before === undefined || after === undefined) return false;
  const shared = places.message_trie.shared(before, after);
  if (shared >= before.depth || after.depth < before.depth) return false;
  const [old] = messagesFrom(before, shared, places);
  const [now, next] = messagesFrom(after, shared, places);
  if (old === undefined || now === undefined || now.role === "assistant") return false;
  if (next !== undefined && contentOf(next) === contentOf(old) && next.role === old.role) return true;
  const content = contentOf(old).trim();
  return content !== "" && now.role === old.role && contentOf(now) !== contentOf(old) && contentOf(now).includes(content);
}

/** Results of earlier calls are shorter than its parent had them; all that stood before them is as it was. */
function isHistoryCleared({ call, parent, places }: EdgeEvidence): boolean {
  const changed = changedMessage(call, parent, places);
  return changed !== null && isCleared(changed.before, changed.now);
}

/** The first message that the parent had too, and that is another one now. */
function changedMessage(call: CallHistory, parent: CallHistory, places: Conversations): { before: Message; now: Message } | null {
  const [before, after] = [places.input.get(parent.call_id), places.input.get(call.call_id)];
  if (before === undefined || after === undefined) return null;
  const shared = places.message_trie.shared(before, after);
  const [old, now] = [messagesFrom(before, shared, places)[0], messagesFrom(after, shared, places)[0]];
  return old === undefined || now === undefined ? null : { before: old, now };
}

function messagesFrom(place: TriePlace, from: number, places: Conversations): Message[] {
  return places.message_trie.items(place, from).map((index) => places.messages[index] as Message);
}

function contentOf(message: Message): string {
  const results = message.parts.flatMap((part) => (part.type === "tool_result" ? part.content : []));
  return textOf(message) + results.map((part) => (part.type === "text" ? part.text : imageName(part))).join("");
}

/** All that came before the parent's turn is in this request, and the turn is not: its harness could not use it. */
function isTurnDropped({ call, parent, places }: EdgeEvidence): boolean {
  if (restoredFrom(call, parent.call_id) !== undefined) return false;
  const [before, after] = [places.input.get(parent.call_id), places.input.get(call.call_id)];
  if (before === undefined || after === undefined || places.message_trie.shared(before, after) < before.depth) return false;
  const [next] = messagesFrom(after, before.depth, places);
  return next?.role !== "assistant";
}

/** A tool call came back with other arguments: a key was added, a path was made absolute. */
function areArgumentsChanged({ call, turn, sampled, copy }: EdgeEvidence): boolean {
  const restored = turn === null ? undefined : restoredFrom(call, turn.call_id);
  if (restored !== undefined) return restored.status === "edited" && restored.differences.includes("arguments");
  if (sampled === null || copy === null) return false;
  const [sampledCalls, sent] = [toolCallsOf(sampled), toolCallsOf(copy)];
  const isSameList = sampledCalls.length === sent.length && sampledCalls.every(({ name }, at) => name === sent[at]?.name);
  return (
    isSameList &&
    !isReordered(sampledCalls, sent) &&
    sampledCalls.some((one, at) => !isSameArguments(one.arguments, sent[at]?.arguments ?? ""))
  );
}

/** They came back as text, in another order, under another name, or fewer. */
function areToolCallsChanged({ call, turn, sampled, copy }: EdgeEvidence): boolean {
  const restored = turn === null ? undefined : restoredFrom(call, turn.call_id);
  if (restored?.differences.some((difference) => ["tool_calls", "tool_calls_cut", "tool_name", "order"].includes(difference))) return true;
  if (restored !== undefined || sampled === null || copy === null) return false;
  const [sampledCalls, sent] = [toolCallsOf(sampled), toolCallsOf(copy)];
  return (
    sampledCalls.length !== sent.length || sampledCalls.some(({ name }, at) => name !== sent[at]?.name) || isReordered(sampledCalls, sent)
  );
}

/** The same calls, each once, at other places. */
function isReordered(sampled: ToolCallPart[], sent: ToolCallPart[]): boolean {
  const keys = (calls: ToolCallPart[]) => calls.map(({ name, arguments: args }) => `${name} ${args}`);
  const [before, after] = [keys(sampled), keys(sent)];
  return before.join("\n") !== after.join("\n") && before.toSorted().join("\n") === after.toSorted().join("\n");
}

function isSameArguments(a: string, b: string): boolean {
  return a === b || sameValue(a, b);
}

function isEdited({ call, parent, turn, sampled, copy, places }: EdgeEvidence): boolean {
  const changed = changedMessage(call, parent, places);
  // Before anything was sampled any change is an edit; behind that, one in other words than the policy's own.
  if (changed !== null && (turn === null || changed.before.role !== "assistant")) return true;
  if (turn === null) return false;
  const restored = restoredFrom(call, turn.call_id);
  if (restored !== undefined) return restored.status === "edited";
  return sampled !== null && copy !== null && textOf(sampled).trim() !== textOf(copy).trim();
}

/** By the harness (its copy has none), or by the template (the copy has it, the tokens do not). */
function isReasoningDropped({ call, turn, sampled, copy, decoded }: EdgeEvidence): boolean {
  if (turn !== null && restoredFrom(call, turn.call_id)?.differences.includes("reasoning_dropped")) return true;
  if (sampled === null) return false;
  const reasoning = reasoningOf(sampled).trim();
  if (reasoning === "") return false;
  if (copy !== null && reasoningOf(copy).trim() === "") return true;
  // Twenty letters are enough to know the passage again, and decoded windows may be short.
  const opening = reasoning.slice(0, 20);
  if (decoded === null) return false;
  return decoded.parent_text.includes(opening) && !decoded.child_text.includes(opening);
}

function reasoningOf(message: Message): string {
  return message.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
}

/** The same arguments in another spelling, seen on the way in or in the copy itself. */
function isReserialised({ call, turn, sampled, copy }: EdgeEvidence): boolean {
  const restored = turn === null ? undefined : restoredFrom(call, turn.call_id);
  if (restored?.differences.some((difference) => difference.startsWith("arguments"))) return true;
  if (sampled === null || copy === null) return false;
  const copies = toolCallsOf(copy);
  return toolCallsOf(sampled).some((toolCall, index) => {
    const other = copies[index];
    return other !== undefined && other.arguments !== toolCall.arguments && sameValue(other.arguments, toolCall.arguments);
  });
}

function sameValue(a: string, b: string): boolean {
  const meant = canonicalArguments(a);
  return meant !== null && meant === canonicalArguments(b);
}
