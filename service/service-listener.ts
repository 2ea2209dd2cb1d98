/** The HTTP face of the ledger: any number of these may stand over one, for all state is in it. */
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { keepSecret } from "../engines/index.ts";
import { AlidadeError, asAlidadeError } from "../errors.ts";
import { body, type ControlEnv } from "../proxy/control/control-body.ts";
import { closeListener, listenOn } from "../proxy/http/listen.ts";
import { RequestBytes } from "../proxy/http/request-bytes.ts";
import { complaintOf } from "../schema/complaint.ts";
import { withJoined } from "../wire/joined.ts";
import { parseJson } from "../wire/json.ts";
import { Access, type AccessToken } from "./access.ts";
import { metricsRoute } from "./metrics-route.ts";
import { openApi } from "./openapi.ts";
import { operatorRoutes } from "./operator-routes.ts";
import { resultRoutes } from "./result-routes.ts";
import type { ServiceRoute } from "./route.ts";
import type { ServiceParts } from "./service-parts.ts";
import { setRoutes } from "./set-routes.ts";

/** A trainer sends its data set in several requests. */
const maxBytes = 64 * 1024 * 1024;

export class ServiceListener implements AsyncDisposable {
  readonly routes: readonly ServiceRoute[];
  readonly #server: Server;
  readonly #access: Access;
  readonly #stopped = new AbortController();

  constructor(parts: ServiceParts, tokens: readonly AccessToken[], version: string) {
    for (const { token } of tokens) keepSecret(token);
    this.#access = new Access(tokens);
    this.routes = [...setRoutes(parts), ...resultRoutes(parts), ...operatorRoutes(parts), metricsRoute(parts)];
    this.#server = createServer(
      { headersTimeout: 30_000, requestTimeout: 60_000 },
      getRequestListener(this.#app(version).fetch, { overrideGlobalObjects: false }),
    );
  }

  /** Throws `config_invalid` naming an address that cannot be had. */
  listen(host: string, port: number): Promise<string> {
    return listenOn(this.#server, host, port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new AlidadeError("cancelled", "the service is stopped"));
    await closeListener(this.#server);
  }

  #app(version: string): Hono<ControlEnv> {
    const app = new Hono<ControlEnv>();
    for (const route of this.routes) app.on(route.method.toUpperCase(), route.path, (context) => this.#handle(route, context));
    app.get("/openapi.json", (context) => {
      this.#access.assert(context.req.header("authorization"), "read");
      return context.json(openApi(this.routes, version));
    });
    app.notFound((context) =>
      answerError(context, new AlidadeError("not_found", `${context.req.method} ${context.req.path} is no route of the service`)),
    );
    app.onError((error, context) => answerError(context, asAlidadeError(error, "internal")));
    return app;
  }

  async #handle(route: ServiceRoute, context: Context<ControlEnv>): Promise<Response> {
    this.#access.assert(context.req.header("authorization"), route.role);
    const result = await route.handle({
      param: (name) => context.req.param(name) ?? "",
      body: route.body && (await body(context, route.body)),
      lines: route.lines ? await linesOf(context, route.lines) : [],
      query: route.query && queryOf(context, route.query),
      signal: AbortSignal.any([clientOf(context), this.#stopped.signal]),
      context,
    });
    return result instanceof Response ? result : context.json(result as object);
  }
}

async function linesOf(context: Context<ControlEnv>, schema: NonNullable<ServiceRoute["lines"]>): Promise<unknown[]> {
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

function lineOf(line: Buffer, number: number, schema: NonNullable<ServiceRoute["lines"]>): unknown {
  const value = parseJson(line);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, given, message } = complaintOf(result.error, value);
  throw new AlidadeError("request_invalid", `line ${number}: ${path.join(".") || "the line"} is ${given}: ${message}`, {
    param: path.join(".") || null,
  });
}

function queryOf(context: Context<ControlEnv>, schema: NonNullable<ServiceRoute["query"]>): unknown {
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

function answerError(context: Context, error: AlidadeError): Response {
  return context.json({ error: error.toJSON() }, error.status as 400);
}
