/** The HTTP face of the ledger: any number of these may stand over one, for all state is in it. */
import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { AlidadeError, asAlidadeError } from "../base/errors.ts";
import { keepSecret } from "../base/wire/secrets.ts";
import { answerError, answerRoute, type ControlEnv, callerLeft, mostBodyBytes, openApi } from "../proxy/control/index.ts";
import type { TlsPair } from "../proxy/http/index.ts";
import { closeListener, type HttpServer, listenOn, RequestBytes, serverOf } from "../proxy/http/index.ts";
import { Access, type AccessRole, type AccessToken, tokenOf } from "./access.ts";
import { ServiceBounds } from "./callers/bounds.ts";
import { type Caller, callerOf } from "./callers/caller.ts";
import { PageDoor } from "./page-door.ts";
import { polarRoutes } from "./polar/polar-routes.ts";
import { PolarTasks } from "./polar/polar-tasks.ts";
import { serviceRoutes } from "./routes/index.ts";
import type { ServiceRoute } from "./routes/route.ts";
import type { ServiceParts } from "./service-parts.ts";

/** A long trajectory of a node on a slow way, which others use too: 256 MiB at 250 kB/s. */
const requestMs = 20 * 60_000;

export class ServiceListener implements AsyncDisposable {
  readonly routes: readonly ServiceRoute[];
  readonly #server: HttpServer;
  readonly #tls: TlsPair | undefined;
  readonly #access: Access;
  readonly #callers: ReadonlyMap<AccessToken, Caller>;
  readonly #stopped = new AbortController();

  constructor(parts: ServiceParts, tokens: readonly AccessToken[], version: string, tls?: TlsPair) {
    for (const { token } of tokens) keepSecret(token);
    this.#access = new Access(tokens);
    const bounds = new ServiceBounds(tokens.length);
    this.#callers = new Map(tokens.map((token) => [token, callerOf(token, parts.ledger, bounds)]));
    const polar = parts.polar === null ? [] : polarRoutes(new PolarTasks(parts, parts.polar), parts);
    this.routes = [...serviceRoutes(parts), ...polar];
    this.#tls = tls;
    this.#server = serverOf(
      { headersTimeout: 30_000, requestTimeout: requestMs },
      getRequestListener(this.#app(parts, version).fetch, { overrideGlobalObjects: false }),
      tls,
    );
  }

  /** Throws `config_invalid` naming an address that cannot be had. */
  listen(host: string, port: number): Promise<string> {
    return listenOn(this.#server, host, port, this.#tls);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new AlidadeError("cancelled", "the service is stopped"));
    await closeListener(this.#server);
  }

  #app({ pages }: ServiceParts, version: string): Hono<ControlEnv> {
    const app = new Hono<ControlEnv>();
    for (const route of this.routes) app.on(route.method.toUpperCase(), route.path, (context) => this.#handle(route, context));
    app.get("/openapi.json", (context) => {
      this.#assert(context, ["read"]);
      return context.json(openApi("Alidade rollout service", this.routes, version));
    });
    const callerOf = (token: AccessToken) => this.#callers.get(token) as Caller;
    if (pages !== null) new PageDoor(pages, this.#access, callerOf, this.#tls !== undefined, this.#stopped.signal).mount(app);
    app.notFound((context) =>
      answerError(context, new AlidadeError("not_found", `${context.req.method} ${context.req.path} is no route of the service`)),
    );
    app.onError((error, context) => answerError(context, asAlidadeError(error, "internal")));
    return app;
  }

  async #handle(route: ServiceRoute, context: Context<ControlEnv>): Promise<Response> {
    const caller = this.#callers.get(this.#assert(context, route.roles)) as Caller;
    const signal = AbortSignal.any([callerLeft(context), this.#stopped.signal]);
    // Until it is answered, for as long its body is in memory in some form or other.
    const leave = await caller.roomFor(bytesInMemory(route, context), signal);
    try {
      return await answerRoute(route, context, signal, (request) => route.handle(request, caller));
    } finally {
      leave();
    }
  }

  #assert(context: Context<ControlEnv>, roles: readonly AccessRole[]): AccessToken {
    const token = tokenOf((name) => context.req.header(name));
    return this.#access.assert(token, roles);
  }
}

/** A body whose length is not said may be as long as one may be, and one that is longer is refused before it is read. */
function bytesInMemory({ method, body, lines, heldBytes }: ServiceRoute, { env }: Context<ControlEnv>): number {
  if (method === "get") return heldBytes ?? 0;
  if (body === undefined && lines === undefined && heldBytes === undefined) return 0;
  const { declared } = new RequestBytes(env.incoming);
  if (declared !== null && declared > mostBodyBytes && heldBytes === undefined) return 0;
  return Math.min(declared ?? mostBodyBytes, heldBytes ?? mostBodyBytes);
}
