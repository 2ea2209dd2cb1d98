/**
 * Tools that the API knows by a type of their own and that the client runs: shells and patches. Models know functions
 * only, so each is shown as one, and a call goes out in the tool's own form. What does not fit that form goes out as the
 * function call that it was: the client answers what it makes of it, and nothing is lost or made up.
 */

import { z } from "zod";
import { canonicalJson, fromToolCallId } from "../../../base/schema/ids.ts";
import type { JsonObject } from "../../../base/schema/message.ts";
import { type Tool, toolCallsOf } from "../../../base/schema/message.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import type { SessionRecord } from "../dialect.ts";
import { AnyObject, AnyText, checked, isObject, MaybeText, present } from "../edge.ts";
import { toolInput } from "../tool-input.ts";
import type { ItemKind } from "./item-id.ts";

type BuiltinTool = {
  description: string;
  parameters: JsonObject;
  idKind: ItemKind;
  /** The item's field that holds the model's input. */
  field: "action" | "operation";
  /** The field's value, or null where the arguments do not fit. */
  toWire(args: JsonObject): JsonObject | null;
  fromWire(value: JsonObject): JsonObject;
};

const text = { type: "string" };
const milliseconds = { type: "integer", description: "Time limit in milliseconds." };

export const builtinTools: ReadonlyMap<string, BuiltinTool> = new Map(
  Object.entries({
    local_shell: {
      description: "Runs a command on this machine, without a shell in between, and returns what it printed.",
      parameters: {
        type: "object",
        properties: {
          command: { type: "array", items: text, description: "The program and its arguments." },
          working_directory: text,
          timeout_ms: milliseconds,
          env: { type: "object", additionalProperties: text },
          user: text,
        },
        required: ["command"],
      },
      idKind: "lsh",
      field: "action",
      // What the action is, is not the model's to say: `type` stands behind its arguments.
      toWire: (args) => (isTextList(args.command) ? { env: {}, ...args, type: "exec" } : null),
      fromWire: ({ type: _, env, ...args }) => present({ ...args, ...(isObject(env) && Object.keys(env).length > 0 && { env }) }),
    },
    shell: {
      description: "Runs shell commands and returns what each of them printed and how it ended.",
      parameters: {
        type: "object",
        properties: {
          commands: { type: "array", items: text, description: "Shell command lines." },
          timeout_ms: milliseconds,
          max_output_length: { type: "integer", description: "Characters of output to keep." },
        },
        required: ["commands"],
      },
      idKind: "sh",
      field: "action",
      toWire: (args) => (isTextList(args.commands) ? { timeout_ms: null, max_output_length: null, ...args } : null),
      fromWire: (action) => present(action),
    },
    apply_patch: {
      description: "Creates, changes or deletes one file.",
      parameters: {
        type: "object",
        properties: {
          type: { type: "string", enum: ["create_file", "update_file", "delete_file"] },
          path: text,
          diff: { type: "string", description: "The new lines or the change, as a V4A diff. None for delete_file." },
        },
        required: ["type", "path"],
      },
      idKind: "apc",
      field: "operation",
      toWire: (args) => (typeof args.path === "string" && isOperation(args.type) ? args : null),
      fromWire: (operation) => operation,
    },
  } satisfies Record<string, BuiltinTool>),
);

export function builtinTool(type: string, name: string): Tool {
  const { description, parameters } = builtinTools.get(type) as BuiltinTool;
  return { name, description, parameters, kind: "function" };
}

/** A call as an item of the tool's own type; null where the sampled arguments do not fit it. */
export function builtinCall(type: string, rawArguments: string): { idKind: ItemKind; fields: JsonObject } | null {
  const tool = builtinTools.get(type);
  const args = toolInput(rawArguments);
  const value = args && (tool?.toWire(args) ?? null);
  if (!tool || value === null) return null;
  return { idKind: tool.idKind, fields: { type: `${type}_call`, [tool.field]: value, ...(type === "shell" && { environment: null }) } };
}

const CallItem = z.looseObject({ call_id: z.string().nullish(), id: z.string().nullish() });

/** A call item of the history: its call's id, and its input as a function's arguments. */
export function fromBuiltinCall(
  type: string,
  item: JsonObject,
  at: string,
  record: SessionRecord | undefined,
): { call_id: string; arguments: string } {
  const { call_id, id } = checked(CallItem, item, at);
  const tool = builtinTools.get(type) as BuiltinTool;
  const received = tool.fromWire(checked(AnyObject, item[tool.field], `${at}.${tool.field}`));
  const callId = checked(AnyText, call_id ?? id, `${at}.call_id`);
  return { call_id: callId, arguments: sampledArguments(type, callId, received, record) ?? JSON.stringify(received) };
}

/**
 * The sampled arguments of a call of ours whose item came back unchanged. The item alone does not show them: a default that
 * the model wrote out looks like one that the form added. Null where the item holds other arguments.
 */
function sampledArguments(type: string, callId: string, received: JsonObject, record: SessionRecord | undefined): string | null {
  const ours = fromToolCallId(callId);
  const turn = ours && record?.turn(ours.call_id);
  const sampled = turn && toolCallsOf(turn.message)[ours.index]?.arguments;
  const given = sampled ? builtinCall(type, sampled) : null;
  if (!sampled || given === null) return null;
  const { field, fromWire } = builtinTools.get(type) as BuiltinTool;
  // As clients read it: the numbers in it are their text until it is written.
  const { [field]: value } = readJson(JSON.stringify(given.fields)) as Record<string, JsonObject>;
  return value && canonicalJson(fromWire(value)) === canonicalJson(received) ? sampled : null;
}

const OutputItem = z.looseObject({ call_id: z.string().nullish(), id: z.string().nullish(), status: z.string().nullish() });
const Outcome = z.looseObject({ type: z.string(), exit_code: z.number().nullish() });
const ShellOutput = z.looseObject({ stdout: z.string().nullish(), stderr: z.string().nullish(), outcome: Outcome.nullish() });

/** What a tool's own output item says, as the text that the model reads. */
export function fromBuiltinOutput(item: JsonObject, at: string): { call_id: string; text: string; is_error: boolean } {
  const { call_id, id, status } = checked(OutputItem, item, at);
  const output = item.output;
  return {
    // A local shell's output names its call in `id`.
    call_id: checked(AnyText, call_id ?? id, `${at}.call_id`),
    text: Array.isArray(output)
      ? output.map((one: unknown, index) => shellText(checked(ShellOutput, one, `${at}.output[${index}]`))).join("\n")
      : checked(MaybeText, output, `${at}.output`) || (status ?? ""),
    is_error: status === "failed",
  };
}

function shellText({ stdout, stderr, outcome }: z.output<typeof ShellOutput>): string {
  const ended = !outcome ? "" : outcome.type === "timeout" ? "timed out" : `exit code ${outcome.exit_code ?? "unknown"}`;
  return [stdout, stderr, ended].filter((one) => one).join("\n");
}

function isOperation(value: unknown): boolean {
  return typeof value === "string" && /^(?:create|update|delete)_file$/.test(value);
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
