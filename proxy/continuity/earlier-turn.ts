/**
 * May this call go on from the tokens of an earlier one? By the record alone: the last turn that we said is in the
 * request as we said it, all that stood before it still does, and nothing but other people's words follows. What does
 * not hold has a name, and the call is rendered anew.
 */

import { hashOf } from "../../base/schema/ids.ts";
import { type Message, textOf } from "../../base/schema/message.ts";
import type { CallBegun, RenderCause } from "../../base/schema/session-log.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import { sameJson } from "../../base/wire/same-json.ts";
import { isCleared } from "../../reconstruct/index.ts";
import { type Call, isSameMessage } from "../session/call.ts";
import { hasReasoning } from "./kept-reasoning.ts";

export type EarlierTurn = {
  from: Call;
  turn: Message;
  /** What the request has behind the turn. */
  appended: Message[];
  /** The turn did not end by itself: the template must close it. */
  isCutOff: boolean;
};

/** `from`: the call's parent by recorded identity. */
export function earlierTurn(call: Call, from: Call | undefined, restore: SessionSpec["restore"]): EarlierTurn | RenderCause {
  const { begun, messages } = call;
  if (begun.prompt) return "text_prompt";
  if (messages.at(-1)?.role === "assistant") return "prefill";
  if (!from) return messages.some(({ role }) => role === "assistant") ? "unknown_turn" : "first_turn";
  const turn = from.turn?.message;
  if (!turn || !from.idText || from.idText.length <= from.promptLength || from.outcome?.missing?.startsWith("misaligned"))
    return "no_token_ids";
  if (from.outcome?.missing?.startsWith("planted_placeholder")) return "planted_placeholder";
  return whatChanged(call, from, restore) ?? settingsChanged(begun, from.begun) ?? cutOff(from, restore) ?? follow(call, from, turn);
}

function follow(call: Call, from: Call, turn: Message): EarlierTurn | RenderCause {
  const appended = call.messages.slice(from.messages.length + 1);
  if (appended.some(({ role }) => role === "assistant")) return "unknown_turn";
  return { from, turn, appended, isCutOff: from.outcome?.finish_reason === "length" || typeof from.outcome?.stop === "string" };
}

/** Whether the conversation up to the earlier turn, that turn included, equals the engine's. */
function whatChanged({ begun, messages }: Call, from: Call, restore: SessionSpec["restore"]): RenderCause | null {
  const place = from.messages.length;
  const parted = from.messages.findIndex((message, index) => !isSameMessage(message, messages[index]));
  const restored = begun.restored.findLast(({ from_call_id }) => from_call_id === from.id);
  if (parted !== -1) return restored && restored.message_index < place ? "compacted" : howTheyPart(from.messages, messages, parted);
  if (restore === "off") return "not_restored";
  if (restored?.message_index !== place) return "unknown_turn";
  if (restored.status === "edited") return "edited";
  return restored.differences.includes("reasoning_dropped") ? "reasoning_dropped" : null;
}

function howTheyPart(before: readonly Message[], now: readonly Message[], parted: number): RenderCause {
  const [old, other] = [before[parted] as Message, now[parted]];
  const isLeading = before.slice(0, parted + 1).every(({ role }) => role === "system" || role === "developer");
  if (isLeading || (other?.role === "system" && parted === 0)) return "system_changed";
  if (
    other &&
    old.role === "assistant" &&
    hasReasoning(old) &&
    !hasReasoning(other) &&
    isSameMessage(withoutReasoning(old), withoutReasoning(other))
  )
    return "reasoning_dropped";
  return other && isCleared(old, other) ? "history_cleared" : "edited";
}

/** Inputs of a template besides messages: the tools, and parameters for the template alone. */
function settingsChanged(begun: CallBegun, before: CallBegun): RenderCause | null {
  if (begun.tools_hash !== before.tools_hash) return "tools_changed";
  return sameJson(settings(begun), settings(before)) ? null : "settings_changed";
}

type Settings = Pick<CallBegun, "effective_sampling" | "tool_choice">;

/** Equal for calls with the same template inputs. */
export function settingsKey(call: Settings): string {
  return hashOf(settings(call));
}

function settings({ effective_sampling: sampling, tool_choice }: Settings): unknown[] {
  const { reasoning_effort, chat_template_kwargs, chat_template, documents, response_format } = sampling;
  return [reasoning_effort, chat_template_kwargs, chat_template, documents, response_format, tool_choice ?? "auto"];
}

/**
 * A turn that was cut off in its text is closed by the template, as in any other deployment. A turn that was cut off in a
 * thought or a call is rendered anew, because the template prints half of one otherwise than it was sampled. A harness
 * never sees the stop string that ended a turn; only `restore: full` keeps the string.
 */
function cutOff({ outcome }: Call, restore: SessionSpec["restore"]): RenderCause | null {
  const isText = outcome?.message?.parts.at(-1)?.type === "text" && outcome.message.parts.every(({ type }) => type !== "tool_call");
  if (typeof outcome?.stop === "string") return restore === "full" && isText ? null : "stop_string";
  if (outcome?.finish_reason === "length") return isText && textOf(outcome.message as Message) !== "" ? null : "truncated";
  return outcome?.finish_reason === "stop" || outcome?.finish_reason === "tool_calls" ? null : "truncated";
}

function withoutReasoning(message: Message): Message {
  return { ...message, parts: message.parts.filter(({ type }) => type !== "reasoning") };
}
