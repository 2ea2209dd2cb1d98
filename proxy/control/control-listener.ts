/**
 * The HTTP face for trainers and operators: sessions are minted, sealed, rewarded and read, engines come and go, and
 * weight updates are fenced (control-sessions.ts, control-engines.ts).
 * It is another listener with a token of its own, on loopback unless told otherwise, and no sandbox can reach it.
 */

import { timingSafeEqual } from "node:crypto";
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { hashKey } from "../../base/schema/ids.ts";
import { keepSecret } from "../../base/wire/secrets.ts";
import { closeListener, listenOn } from "../http/listen.ts";
import type { ControlEnv } from "./control-body.ts";
import { engineRoutes } from "./control-engines.ts";
import { sessionRoutes } from "./control-sessions.ts";
import type { Controlled } from "./controlled.ts";
import { openApi } from "./openapi.ts";
import { answerError, answerRoute, callerLeft, type ListenerRoute } from "./route.ts";

/** All that the listener answers, beside `GET /openapi.json`. */
export const controlRoutes = (proxy: Controlled): ListenerRoute[] => [...sessionRoutes(proxy), ...engineRoutes(proxy)];

export class ControlListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #proxy: Controlled;
  readonly #tokenHash: string;

  constructor(proxy: Controlled, token: string, version: string) {
    this.#proxy = proxy;
    this.#tokenHash = hashKey(token);
    keepSecret(token);
    this.#server = createServer(
      { headersTimeout: 30_000, requestTimeout: 60_000 },
      getRequestListener(this.#app(version).fetch, { overrideGlobalObjects: false }),
    );
  }

  listen(host: string, port: number): Promise<string> {
    return listenOn(this.#server, host, port);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeListener(this.#server);
  }

  #app(version: string): Hono<ControlEnv> {
    const proxy = this.#proxy;
    const app = new Hono<ControlEnv>();
    app.use(async (context, next) => {
      if (!this.#mayEnter(context.req.header("authorization")))
        throw new AlidadeError("unauthorized", "the control listener wants its token as `Authorization: Bearer …`");
      await next();
    });
    const routes = controlRoutes(proxy);
    for (const route of routes)
      app.on(route.method.toUpperCase(), route.path, (context) =>
        answerRoute(route, context, callerLeft(context), (request) => route.handle(request)),
      );
    app.get("/openapi.json", (context) => context.json(openApi("Alidade control listener", routes, version)));
    app.notFound((context) =>
      answerError(context, new AlidadeError("not_found", `${context.req.method} ${context.req.path} is no route of the control listener`)),
    );
    app.onError((error, context) => answerError(context, asAlidadeError(error, "internal")));
    return app;
  }

  #mayEnter(header: string | undefined): boolean {
    const token = header?.replace(/^Bearer +/i, "") ?? "";
    return timingSafeEqual(Buffer.from(hashKey(token)), Buffer.from(this.#tokenHash));
  }
}
