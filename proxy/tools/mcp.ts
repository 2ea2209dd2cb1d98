/**
 * Reads and writes the JSON-RPC messages of the Model Context Protocol. Results and arguments are cut out of the text and
 * passed on unchanged. Parsing and writing them again would change 1.0, the order of keys, and integers of twenty digits.
 */
import { z } from "zod";
import { areShallow } from "../../base/schema/arguments.ts";
import { tryJson } from "../../base/schema/read-json.ts";
import { jsonMembers } from "../../base/wire/json-members.ts";
import { ToolFault } from "./tool-fault.ts";

/** Newest first. */
export const protocolVersions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;
export const [latestVersion] = protocolVersions;

export const rpcErrors = { parse: -32700, request: -32600, method: -32601, params: -32602, internal: -32603 } as const;

/** `id`, `result`, `error` and `params` are JSON text, exactly as sent; undefined if absent. `value`: the parsed `result`. */
export type RpcMessage = {
  id: string | undefined;
  method: string | undefined;
  params: string | undefined;
  result: string | undefined;
  error: string | undefined;
  value: unknown;
};

const Rpc = z.looseObject({ id: z.union([z.string(), z.number(), z.null()]).optional(), method: z.string().optional() });

/** null: the text is not one JSON-RPC message. A batch is refused too: no harness sends one, and its answers would wait for each other. */
export function readMessage(text: string): RpcMessage | null {
  const parsed = Rpc.safeParse(tryJson(text));
  if (!parsed.success) return null;
  const { id, params, result, error } = Object.fromEntries(jsonMembers(text)) as Record<string, string | undefined>;
  return { id: id === "null" ? undefined : id, method: parsed.data.method, params, result, error, value: parsed.data.result };
}

export function requestText(id: number, method: string, params?: string): string {
  return `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${params === undefined ? "" : `,"params":${params}`}}`;
}

export function noticeText(method: string, params?: string): string {
  return `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${params === undefined ? "" : `,"params":${params}`}}`;
}

export function resultText(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
}

/** `error`: an error object as JSON text. */
export function errorText(id: string, error: string): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${error}}`;
}

export function errorObject(code: number, message: string): string {
  return JSON.stringify({ code, message });
}

/** Answers a request that the service sends to us. We support only `ping`. null: the message is not a request. */
export function answerToService({ id, method }: RpcMessage): string | null {
  if (id === undefined || method === undefined) return null;
  if (method === "ping") return resultText(id, "{}");
  return errorText(id, errorObject(rpcErrors.method, `this client does not support ${method.slice(0, 100)}`));
}

/** A service's answer as JSON text: a result with its parsed `value`, or a JSON-RPC error. */
export type ServiceAnswer = { result: string; value: unknown } | { error: string };

const Content = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })),
  isError: z.boolean().optional(),
});
export type ToolContent = z.infer<typeof Content>;

/** Throws a ToolFault if the value is not a tool result. */
export function readContent(value: unknown): ToolContent {
  const parsed = Content.safeParse(value);
  if (!parsed.success) throw new ToolFault("invalid", "its answer has no list `content`, which a tool result must have");
  // Its parts are written as JSON to be measured, and deep values overflow the stack of the writer.
  if (!areShallow(parsed.data.content)) throw new ToolFault("invalid", "the `content` of its answer nests too deeply");
  return parsed.data;
}

/** Makes a tool result of our own, which tells the model about an error. */
export function toolErrorResult(text: string): ToolContent {
  return { content: [{ type: "text", text }], isError: true };
}
