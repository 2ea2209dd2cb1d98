/** An answer that a person gives in the place of a recorded one: text, or JSON with text and tool calls. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import type { Part, Tool, ToolCallPart } from "../../base/schema/message.ts";
import { tryJson } from "../../base/schema/read-json.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { Call } from "../session/call.ts";
import type { RecordedCall, SessionRecording } from "./recording.ts";

const Given = z.strictObject({
  text: z.string().optional(),
  tool_calls: z.array(z.strictObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()) })).min(1),
});

/** null: it is text. JSON with `tool_calls` is meant as calls. */
function toGiven(answer: string): z.infer<typeof Given> | null {
  const json = tryJson(answer);
  if (typeof json !== "object" || json === null || !("tool_calls" in json)) return null;
  const { data, error } = Given.safeParse(json);
  if (data) return data;
  const [issue] = error.issues;
  const field = issue?.path.join(".") || "the object";
  throw new AlidadeError("request_invalid", `--edit: ${field} is wrong (${issue?.message}): give name and arguments of each call`, {
    param: "edit",
  });
}

/**
 * The recorded call with this answer. It has no sampled ids, so it is never trained. Throws `request_invalid` for a call of a tool
 * that the harness does not have.
 */
export function editedAnswer({ tools }: SessionRecording, { call, ...rest }: RecordedCall, answer: string): RecordedCall {
  const { finished } = rest;
  if (finished === null)
    throw new AlidadeError("request_invalid", "the turn has no answer that another one could replace", { param: "edit" });
  const given = toGiven(answer);
  const known = tools.get(call.begun.tools_hash ?? "") ?? [];
  const text = given ? (given.text ?? "") : answer;
  const parts: Part[] = [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...(given?.tool_calls ?? []).map((wanted, index) => toToolCall(wanted, `edited${index}`, known)),
  ];
  const { tokens: _, ...kept } = finished;
  const edited = {
    ...kept,
    sampled_ids: null,
    logprobs: null,
    missing: "edited: the answer was given by hand",
    message: { role: "assistant" as const, parts },
    finish_reason: given ? ("tool_calls" as const) : ("stop" as const),
    stop: null,
  };
  const copy = new Call(call.begun, call.messages);
  copy.apply(edited, call.tokens && IdText.of([...call.tokens].slice(0, call.promptLength)));
  return { ...rest, call: copy, finished: edited };
}

type GivenCall = z.infer<typeof Given>["tool_calls"][number];

/** A freeform tool (Responses) gets its `input` as raw text. */
function toToolCall({ name, arguments: fields }: GivenCall, id: string, tools: readonly Tool[]): ToolCallPart {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined)
    throw new AlidadeError(
      "request_invalid",
      `the harness has no tool "${name}": it has ${tools.map((one) => one.name).join(", ") || "none"}`,
      { param: "edit" },
    );
  if (tool.kind === "function") return { type: "tool_call", id, name, arguments: JSON.stringify(fields), kind: tool.kind };
  const { input, ...others } = fields;
  if (typeof input !== "string" || Object.keys(others).length > 0)
    throw new AlidadeError("request_invalid", `the tool "${name}" takes text: give it as {"input": "…"} in its arguments`, {
      param: "edit",
    });
  return { type: "tool_call", id, name, arguments: input, kind: tool.kind };
}
