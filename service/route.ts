/** A route as data: the listener serves it, and the OpenAPI document is made of it. */
import type { Context } from "hono";
import type { z } from "zod";
import type { ControlEnv } from "../proxy/control/control-body.ts";
import type { AccessRole } from "./access.ts";

export type ServiceRoute<Body extends z.ZodType = z.ZodType, Query extends z.ZodType = z.ZodType> = {
  method: "get" | "put" | "post" | "delete";
  /** With `:name` for what varies. */
  path: string;
  role: AccessRole;
  title: string;
  body?: Body;
  /** The body is NDJSON, and this one line of it. */
  lines?: z.ZodType;
  query?: Query;
  /** Headers that it reads, with what they say. */
  headers?: Record<string, string>;
  /** Media types of the answer; absent: JSON. */
  answers?: readonly string[];
  /** Returns what is answered as JSON, or the response itself. */
  handle(request: RouteRequest<z.infer<Body>, z.infer<Query>>): Promise<unknown>;
};

export type RouteRequest<Body = unknown, Query = unknown> = {
  param(name: string): string;
  body: Body;
  lines: unknown[];
  query: Query;
  /** Fires when the client leaves, or the service is stopped. */
  signal: AbortSignal;
  context: Context<ControlEnv>;
};

/** Keeps the types of body and query for the handler. */
export function defineRoute<Body extends z.ZodType, Query extends z.ZodType>(route: ServiceRoute<Body, Query>): ServiceRoute {
  return route as unknown as ServiceRoute;
}
