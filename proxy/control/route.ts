/** A route as data: a listener serves it, and the OpenAPI document and docs/http.md are made of it. */
import type { IncomingMessage } from "node:http";
import type { Context } from "hono";
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { complaintOf } from "../../base/schema/complaints/complaint.ts";
import { RequestBytes } from "../http/request-bytes.ts";
import { body, bodyMs, type ControlEnv, mostBodyBytes } from "./control-body.ts";
import { readLines } from "./read-lines.ts";

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

/** A route without a body, for `body` of those that take none but an empty object. */
export const nothing = z.strictObject({});

/** Keeps the types of body and query for the handler. */
export function defineRoute<R extends ListenerRoute, Body extends z.ZodType, Query extends z.ZodType>(
  route: ListenerRoute<Body, Query> & Omit<R, keyof ListenerRoute>,
): R {
  return route as unknown as R;
}

/** What a route is asked, without its handler. */
type AskedRoute = Omit<ListenerRoute, "handle">;

/** Checks the request by the route's schemas, and has it answered. `signal`: of the request. Throws `request_invalid` naming the field. */
export async function answerRoute(
  route: AskedRoute,
  context: Context<ControlEnv>,
  signal: AbortSignal,
  handle: ListenerRoute["handle"],
): Promise<Response> {
  const result = await handle({
    param: (name) => context.req.param(name) ?? "",
    body: route.body && (await body(context, route.body)),
    lines: route.lines ? await readLines(piecesOf(context), route.lines) : [],
    query: route.query && queryOf(context, route.query),
    signal,
    context,
  });
  return result instanceof Response ? result : context.json(result as object, route.status ?? 200);
}

function piecesOf({ env }: Context<ControlEnv>): AsyncIterable<Buffer> {
  return new RequestBytes(env.incoming as IncomingMessage).pieces({ limit: mostBodyBytes, withinMs: bodyMs });
}

export function answerError(context: Context, error: AlidadeError): Response {
  if (error.retryAfterSeconds !== null) context.header("retry-after", String(Math.ceil(error.retryAfterSeconds)));
  return context.json({ error: error.toJSON() }, error.status as 400);
}

function queryOf(context: Context<ControlEnv>, schema: z.ZodType): unknown {
  const value = context.req.query();
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, given, message } = complaintOf(result.error, value);
  throw new AlidadeError("request_invalid", `${path.join(".")} is ${given}: ${message}`, { param: path.join(".") || null });
}

/** Aborted when the caller leaves before the answer. */
export function callerLeft(context: Context<ControlEnv>): AbortSignal {
  const { outgoing } = context.env as { outgoing: NodeJS.WritableStream & { writableFinished: boolean } };
  const left = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) left.abort(new AlidadeError("cancelled", "the caller left before the answer"));
  });
  return left.signal;
}
