/**
 * Tools that the API knows by a type of their own and that the client runs: shells, patches and screens. Models know functions
 * only, so each is shown as one, and a call goes out in the tool's own form. What does not fit that form goes out as the
 * function call that it was: the client answers what it makes of it, and nothing is lost or made up.
 */

import { z } from "zod";
import { canonicalJson, fromToolCallId } from "../../../base/schema/ids.ts";
import type { JsonObject } from "../../../base/schema/message.ts";
import { type Tool, toolCallsOf } from "../../../base/schema/message.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import type { SessionRecord } from "../dialect.ts";
import { AnyObject, AnyText, checked, invalid, isObject, MaybeText, present } from "../edge.ts";
import { toolInput } from "../tool-input.ts";
import { actionFromWire, actionProperties, actionToWire } from "./computer-action.ts";
import type { ItemKind } from "./item-id.ts";

type BuiltinTool = {
  description: string;
  /** What the tool's own fields in the request add to it. */
  details?(sent: JsonObject, at: string): string;
  parameters: JsonObject;
  /** The type of its calls' items. */
  item: string;
  idKind: ItemKind;
  /** The item's field that holds the model's input. */
  field: "action" | "actions" | "operation";
  /** Fields that clients demand beside it. */
  beside?: JsonObject;
  /** The field's value, or null where the arguments do not fit. */
  toWire(args: JsonObject): JsonObject | JsonObject[] | null;
  /** Throws `request_invalid` where the field holds something else. */
  fromWire(value: unknown, at: string): JsonObject;
};

const text = { type: "string" };
const Actions = z.array(AnyObject);
const Display = z.looseObject({ display_width: z.number().positive(), display_height: z.number().positive(), environment: z.string() });
const usesComputer = "Controls a screen by mouse and keyboard, and returns a picture of it.";
const milliseconds = { type: "integer", description: "Time limit in milliseconds." };

/** Both tools' calls are items of this type. No call made here has a check that its user would have to confirm. */
const computerCall = { item: "computer_call", idKind: "cu", beside: { pending_safety_checks: [] } } as const;

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
      item: "local_shell_call",
      idKind: "lsh",
      field: "action",
      // What the action is, is not the model's to say: `type` stands behind its arguments.
      toWire: (args) => (isTextList(args.command) ? { env: {}, ...args, type: "exec" } : null),
      fromWire(value, at) {
        const { type: _, env, ...args } = checked(AnyObject, value, at);
        return present({ ...args, ...(isObject(env) && Object.keys(env).length > 0 && { env }) });
      },
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
      item: "shell_call",
      idKind: "sh",
      field: "action",
      beside: { environment: null },
      toWire: (args) => (isTextList(args.commands) ? { timeout_ms: null, max_output_length: null, ...args } : null),
      fromWire: (action, at) => present(checked(AnyObject, action, at)),
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
      item: "apply_patch_call",
      idKind: "apc",
      field: "operation",
      toWire: (args) => (typeof args.path === "string" && isOperation(args.type) ? args : null),
      fromWire: (operation, at) => checked(AnyObject, operation, at),
    },
    computer: {
      description: usesComputer,
      parameters: {
        type: "object",
        properties: {
          actions: {
            type: "array",
            items: { type: "object", properties: actionProperties, required: ["type"] },
            description: "What to do, in this order.",
          },
        },
        required: ["actions"],
      },
      ...computerCall,
      field: "actions",
      toWire({ actions }) {
        const list = Array.isArray(actions) ? actions.map(actionToWire) : [];
        return list.length > 0 && list.every((action) => action !== null) ? list : null;
      },
      fromWire: (actions, at) => ({ actions: checked(Actions, actions, at).map(actionFromWire) }),
    },
    computer_use_preview: {
      description: usesComputer,
      details(sent, at) {
        const { display_width: width, display_height: height, environment } = checked(Display, sent, at);
        return `The screen has ${width}x${height} pixels (${environment}).`;
      },
      parameters: { type: "object", properties: actionProperties, required: ["type"] },
      ...computerCall,
      field: "action",
      toWire: actionToWire,
      fromWire: (action, at) => actionFromWire(checked(AnyObject, action, at)),
    },
  } satisfies Record<string, BuiltinTool>),
);

/** `sent`: the tool as it stands in the request. */
export function builtinTool(type: string, name: string, sent: JsonObject, at: string): Tool {
  const { description, parameters, details } = builtinTools.get(type) as BuiltinTool;
  const all = details ? `${description} ${details(sent, at)}` : description;
  return { name, description: all, parameters, kind: "function" };
}

/** The tool that a choice names: the API lets a choice name `computer` in another word than a tool. */
export function builtinTypeOfChoice(type: string): string | null {
  const own = type === "computer_use" ? "computer" : type;
  return builtinTools.has(own) ? own : null;
}

/** The tool that a call item of the history is of. Those of both screens have one type, and differ in their field. */
export function builtinTypeOfCall(item: JsonObject, at: string): string {
  if (item.type !== "computer_call") return String(item.type).slice(0, -"_call".length);
  const [one, several] = [item.action ?? null, item.actions ?? null];
  if (several === null) return "computer_use_preview";
  // Some clients repeat the first action in the older field.
  if (one !== null && !(Array.isArray(several) && canonicalJson(several[0]) === canonicalJson(one)))
    throw invalid(`${at}.action`, "says something else than `actions`; send the field that was answered");
  return "computer";
}

/** A call as an item of the tool's own type; null where the sampled arguments do not fit it. */
export function builtinCall(type: string, rawArguments: string): { idKind: ItemKind; fields: JsonObject } | null {
  const tool = builtinTools.get(type);
  const args = toolInput(rawArguments);
  const value = args && (tool?.toWire(args) ?? null);
  if (!tool || value === null) return null;
  return { idKind: tool.idKind, fields: { type: tool.item, [tool.field]: value, ...tool.beside } };
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
  const received = tool.fromWire(item[tool.field], `${at}.${tool.field}`);
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
  const { [field]: value } = readJson(JSON.stringify(given.fields)) as JsonObject;
  return canonicalJson(fromWire(value, "")) === canonicalJson(received) ? sampled : null;
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
