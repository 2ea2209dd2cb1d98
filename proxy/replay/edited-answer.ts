/** An answer that a person gives in the place of a recorded one: text, or JSON with text and tool calls. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import type { Part } from "../../base/schema/message.ts";
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
  const known = (tools.get(call.begun.tools_hash ?? "") ?? []).map(({ name }) => name);
  const unknown = given?.tool_calls.find(({ name }) => !known.includes(name));
  if (unknown)
    throw new AlidadeError("request_invalid", `the harness has no tool "${unknown.name}": it has ${known.join(", ") || "none"}`, {
      param: "edit",
    });
  const text = given ? (given.text ?? "") : answer;
  const parts: Part[] = [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...(given?.tool_calls ?? []).map(({ name, arguments: fields }, index) => {
      const id = `edited${index}`;
      return { type: "tool_call" as const, id, name, arguments: JSON.stringify(fields), kind: "function" as const };
    }),
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
