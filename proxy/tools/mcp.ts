/**
 * What the Model Context Protocol says on the wire: versions and messages of JSON-RPC. Messages are texts here, and what
 * they carry is cut out of them and never parsed and written again: a number such as 1.0, the order of keys and an integer
 * of twenty digits come to the harness as the service wrote them.
 */
import { z } from "zod";
import { tryJson } from "../../base/schema/read-json.ts";
import { jsonMembers } from "../../base/wire/json-members.ts";
import { ToolFault } from "./tool-fault.ts";

/** Newest first. */
export const protocolVersions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;
export const [latestVersion] = protocolVersions;

export const rpcErrors = { parse: -32700, request: -32600, method: -32601, params: -32602, internal: -32603 } as const;

/** `id`, `result`, `error` and `params` as they are written; undefined where they are not there. `value`: what `result` is. */
export type RpcMessage = {
  id: string | undefined;
  method: string | undefined;
  params: string | undefined;
  result: string | undefined;
  error: string | undefined;
  value: unknown;
};

const Rpc = z.looseObject({ id: z.union([z.string(), z.number(), z.null()]).optional(), method: z.string().optional() });

/** null: the text is no message. A batch is none either: no harness sends one, and its answers would wait for each other. */
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

/** `error`: the text of an error object. */
export function errorText(id: string, error: string): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${error}}`;
}

export function errorObject(code: number, message: string): string {
  return JSON.stringify({ code, message });
}

/** What we answer to a request of the service's own; null: it is none. Of what it may ask we have only a sign of life. */
export function answerToService({ id, method }: RpcMessage): string | null {
  if (id === undefined || method === undefined) return null;
  if (method === "ping") return resultText(id, "{}");
  return errorText(id, errorObject(rpcErrors.method, `this client has no ${method.slice(0, 100)}`));
}

/** What a service answered, as it is written: a result, with the value that it is, or an error of the protocol. */
export type ServiceAnswer = { result: string; value: unknown } | { error: string };

const Content = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })),
  isError: z.boolean().optional(),
});
export type ToolContent = z.infer<typeof Content>;

/** Throws a ToolFault for what is no result of a tool. */
export function readContent(value: unknown): ToolContent {
  const parsed = Content.safeParse(value);
  if (!parsed.success) throw new ToolFault("invalid", "its answer has no list `content`, which the result of a tool has");
  return parsed.data;
}

/** A result in our own words, for the model. */
export function toolErrorResult(text: string): ToolContent {
  return { content: [{ type: "text", text }], isError: true };
}
