/** A route as data: a listener serves it, and the OpenAPI document and docs/http.md are made of it. */
import type { IncomingMessage } from "node:http";
import type { Context } from "hono";
import { z } from "zod";
import { AlidadeError } from "../../errors.ts";
import { complaintOf } from "../../schema/complaint.ts";
import { withJoined } from "../../wire/joined.ts";
import { parseJson } from "../../wire/json.ts";
import { RequestBytes } from "../http/request-bytes.ts";
import { body, type ControlEnv } from "./control-body.ts";

export type ListenerRoute<Body extends z.ZodType = z.ZodType, Query extends z.ZodType = z.ZodType> = {
  method: "get" | "put" | "post" | "delete";
  /** With `:name` for what varies. */
  path: string;
  title: string;
  body?: Body;
  /** The body is NDJSON, and this one line of it. */
  lines?: z.ZodType;
  query?: Query;
  /** Headers that it reads, with what they say. */
  headers?: Record<string, string>;
  /** Media types of the answer; absent: JSON. */
  answers?: readonly string[];
  /** Default 200. */
  status?: 201;
  /** Returns what is answered as JSON, or the response itself. */
  handle(request: RouteRequest<z.infer<Body>, z.infer<Query>>): Promise<unknown>;
};

export type RouteRequest<Body = unknown, Query = unknown> = {
  param(name: string): string;
  body: Body;
  lines: unknown[];
  query: Query;
  /** Fires when the client leaves, or the listener is stopped. */
  signal: AbortSignal;
  context: Context<ControlEnv>;
};

/** A trainer sends its data set in several requests. */
const maxBytes = 64 * 1024 * 1024;

/** A route without a body, for `body` of those that take none but an empty object. */
export const nothing = z.strictObject({});

/** Keeps the types of body and query for the handler. */
export function defineRoute<R extends ListenerRoute, Body extends z.ZodType, Query extends z.ZodType>(
  route: ListenerRoute<Body, Query> & Omit<R, keyof ListenerRoute>,
): R {
  return route as unknown as R;
}

/** Checks the request by the route's schemas. Throws `request_invalid` naming the field. */
export async function answerRoute(route: ListenerRoute, context: Context<ControlEnv>, stopped?: AbortSignal): Promise<Response> {
  const client = clientOf(context);
  const result = await route.handle({
    param: (name) => context.req.param(name) ?? "",
    body: route.body && (await body(context, route.body)),
    lines: route.lines ? await linesOf(context, route.lines) : [],
    query: route.query && queryOf(context, route.query),
    signal: stopped === undefined ? client : AbortSignal.any([client, stopped]),
    context,
  });
  return result instanceof Response ? result : context.json(result as object, route.status ?? 200);
}

export function answerError(context: Context, error: AlidadeError): Response {
  return context.json({ error: error.toJSON() }, error.status as 400);
}

async function linesOf(context: Context<ControlEnv>, schema: z.ZodType): Promise<unknown[]> {
  const pieces = await new RequestBytes(context.env.incoming as IncomingMessage).read({ limit: maxBytes });
  const bytes = withJoined(pieces, (joined) => Buffer.from(joined));
  const lines: unknown[] = [];
  for (let from = 0, number = 1; from < bytes.length; number++) {
    const end = bytes.indexOf(10, from);
    const line = bytes.subarray(from, end === -1 ? bytes.length : end);
    from = end === -1 ? bytes.length : end + 1;
    if (line.length > 0 && !/^\s*$/.test(line.subarray(0, 100).toString())) lines.push(lineOf(line, number, schema));
  }
  return lines;
}

function lineOf(line: Buffer, number: number, schema: z.ZodType): unknown {
  const value = parseJson(line);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, given, message } = complaintOf(result.error, value);
  throw new AlidadeError("request_invalid", `line ${number}: ${path.join(".") || "the line"} is ${given}: ${message}`, {
    param: path.join(".") || null,
  });
}

function queryOf(context: Context<ControlEnv>, schema: z.ZodType): unknown {
  const value = context.req.query();
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, given, message } = complaintOf(result.error, value);
  throw new AlidadeError("request_invalid", `${path.join(".")} is ${given}: ${message}`, { param: path.join(".") || null });
}

/** Aborted when the caller leaves before the answer. */
function clientOf(context: Context<ControlEnv>): AbortSignal {
  const { outgoing } = context.env as { outgoing: NodeJS.WritableStream & { writableFinished: boolean } };
  const left = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) left.abort(new AlidadeError("cancelled", "the caller left before the answer"));
  });
  return left.signal;
}
