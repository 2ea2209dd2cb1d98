/**
 * Input items as messages. One sampled turn is several items here (reasoning, message, calls), so neighbours on the
 * assistant's side are put together again: rendered as messages of their own they would be another context.
 */
import { z } from "zod";
import type { Message, Part } from "../../../base/schema/message.ts";
import { carrierOf, fromCarrier } from "../carrier.ts";
import type { SessionRecord } from "../dialect.ts";
import { checked, invalid } from "../edge.ts";
import { parseContent, parsePart, textParts } from "../openai/content.ts";
import { builtinTypeOfCall, fromBuiltinCall, fromBuiltinOutput } from "./builtin-tools.ts";
import { hostedItem } from "./hosted-items.ts";
import { callOfItem } from "./item-id.ts";
import type { ToolList } from "./tools.ts";

const WireItem = z.looseObject({ type: z.string().nullish(), role: z.string().nullish(), id: z.string().nullish() });
type WireItem = z.output<typeof WireItem>;
const MessageItem = z.looseObject({ role: z.enum(["system", "developer", "user", "assistant"]) });
const Reasoning = z.looseObject({
  summary: z.array(z.looseObject({ text: z.string() })).nullish(),
  content: z.array(z.looseObject({ text: z.string() })).nullish(),
  encrypted_content: z.string().nullish(),
});
const FunctionCall = z.looseObject({ call_id: z.string(), name: z.string(), arguments: z.string(), namespace: z.string().nullish() });
const CustomCall = z.looseObject({ call_id: z.string(), name: z.string(), input: z.string(), namespace: z.string().nullish() });
const Output = z.looseObject({ call_id: z.string() });

export function parseItems(values: unknown[], tools: ToolList, record: SessionRecord | undefined): Message[] {
  const turns = new TurnBuilder();
  for (const [index, value] of values.entries()) {
    const at = `input[${index}]`;
    const item = checked(WireItem, value, at);
    switch (item.type ?? "message") {
      case "message":
        addMessage(item, at, turns);
        break;
      case "reasoning":
        addReasoning(item, at, turns);
        break;
      case "function_call": {
        const call = checked(FunctionCall, item, at);
        const name = tools.nameOf(call.name, call.namespace);
        turns.add({ type: "tool_call", id: call.call_id, name, arguments: call.arguments, kind: "function" }, callOfItem(item.id));
        break;
      }
      case "custom_tool_call": {
        const call = checked(CustomCall, item, at);
        const name = tools.nameOf(call.name, call.namespace);
        turns.add({ type: "tool_call", id: call.call_id, name, arguments: call.input, kind: "custom" }, callOfItem(item.id));
        break;
      }
      case "function_call_output":
      case "custom_tool_call_output": {
        const { call_id } = checked(Output, item, at);
        const content = parseContent(item.output, `${at}.output`);
        turns.push({ role: "tool", parts: [{ type: "tool_result", call_id, content, is_error: false }] });
        break;
      }
      case "additional_tools":
        // The tools themselves were read before the items: names in the history need them.
        break;
      case "local_shell_call":
      case "shell_call":
      case "apply_patch_call":
      case "computer_call": {
        const type = builtinTypeOfCall(item, at);
        const { call_id, ...call } = fromBuiltinCall(type, item, at, record);
        turns.add({ type: "tool_call", id: call_id, name: tools.builtinName(type), ...call, kind: "function" }, callOfItem(item.id));
        break;
      }
      case "local_shell_call_output":
      case "shell_call_output":
      case "apply_patch_call_output": {
        const { text, ...output } = fromBuiltinOutput(item, at);
        turns.push({ role: "tool", parts: [{ type: "tool_result", ...output, content: textParts(text) }] });
        break;
      }
      case "computer_call_output": {
        const { call_id } = checked(Output, item, at);
        // Its safety checks are the vendor's words to the client's user; a model never read them.
        const content = parsePart(item.output, `${at}.output`);
        turns.push({ role: "tool", parts: [{ type: "tool_result", call_id, content, is_error: false }] });
        break;
      }
      default: {
        const hosted = hostedItem(item, at, index);
        if (hosted === null)
          throw invalid(
            `${at}.type`,
            `items of type "${item.type}" are not supported here, and no part of a conversation is left out of it`,
          );
        turns.add(hosted.call, null);
        turns.push(hosted.result);
      }
    }
  }
  return turns.messages;
}

function addMessage(item: WireItem, at: string, turns: TurnBuilder): void {
  const { role } = checked(MessageItem, item, at);
  const parts = parseContent(item.content, `${at}.content`);
  if (role !== "assistant") turns.push({ role, parts });
  else turns.add(parts, callOfItem(item.id));
}

/** The text itself where it was given; a summary is all that other vendors let out. An item's id of ours names the thought too. */
function addReasoning(item: WireItem, at: string, turns: TurnBuilder): void {
  const reasoning = checked(Reasoning, item, at);
  const texts = reasoning.content?.length ? reasoning.content : (reasoning.summary ?? []);
  const named = callOfItem(item.id);
  const carrier = reasoning.encrypted_content ?? (named === null ? undefined : carrierOf(named));
  const callId = named ?? (carrier === undefined ? null : fromCarrier(carrier));
  turns.add({ type: "reasoning", text: texts.map((part) => part.text).join(""), ...(carrier !== undefined && { carrier }) }, callId);
}

/** Gathers messages; items of the assistant join its last message unless their ids say that they are another call's. */
class TurnBuilder {
  readonly messages: Message[] = [];
  #callId: string | null = null;

  push(message: Message): void {
    this.messages.push(message);
    this.#callId = null;
  }

  add(parts: Part | Part[], callId: string | null): void {
    const last = this.messages.at(-1);
    const another = callId !== null && this.#callId !== null && callId !== this.#callId;
    if (last?.role === "assistant" && !another) last.parts.push(...[parts].flat());
    else this.push({ role: "assistant", parts: [parts].flat() });
    this.#callId = callId ?? this.#callId;
  }
}
