/**
 * The view's own listener, on loopback and only for requests with its key. The link carries the key. A cookie for this
 * port keeps it, so that no later address holds it. `Host` is checked, because a foreign site can point its own name at
 * loopback.
 */
import { timingSafeEqual } from "node:crypto";
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { hashKey } from "../../base/schema/ids.ts";
import type { ControlEnv } from "../../proxy/control/index.ts";
import { closeListener, listenOn } from "../../proxy/http/index.ts";
import { failure } from "./view-app.ts";

export class ViewListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #keyHash: string;
  #port = 0;

  constructor(app: Hono<ControlEnv>, key: string) {
    this.#keyHash = hashKey(key);
    this.#server = createServer(
      { headersTimeout: 30_000, requestTimeout: 60_000 },
      getRequestListener(this.#guarded(app).fetch, { overrideGlobalObjects: false }),
    );
  }

  /** Returns the address without the key. Port 0 takes any free port. */
  async listen(port: number): Promise<string> {
    const url = await listenOn(this.#server, "127.0.0.1", port);
    this.#port = Number(new URL(url).port);
    return url;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeListener(this.#server);
  }

  #guarded(app: Hono<ControlEnv>): Hono<ControlEnv> {
    const guarded = new Hono<ControlEnv>();
    guarded.use(async (context, next) => {
      const host = context.req.header("host") ?? "";
      if (!["127.0.0.1", "localhost", "[::1]"].some((name) => host === `${name}:${this.#port}`))
        return failure(new AlidadeError("request_invalid", "this address is not the one that the view listens at"));
      const given = context.req.query("key");
      if (given !== undefined && this.#isKey(given)) return this.#keep(context, given);
      if (!this.#isKey(this.#carried(context)))
        return failure(new AlidadeError("unauthorized", "open the link that `alidade view` printed: it has the key"));
      return next();
    });
    guarded.route("/", app);
    guarded.notFound(() => failure(new AlidadeError("not_found", "there is no such page")));
    guarded.onError((error) => failure(asAlidadeError(error, "internal")));
    return guarded;
  }

  /** Returns the same address without the key. */
  #keep(context: Context<ControlEnv>, key: string): Response {
    setCookie(context, this.#cookie, key, { httpOnly: true, sameSite: "Lax", path: "/" });
    const address = new URL(context.req.url);
    address.searchParams.delete("key");
    return context.redirect(`${address.pathname}${address.search}`, 303);
  }

  #carried(context: Context<ControlEnv>): string {
    return getCookie(context, this.#cookie) ?? context.req.header("authorization")?.replace(/^Bearer +/i, "") ?? "";
  }

  /** Names the cookie after the port: browsers send a host's cookies to all of its ports. */
  get #cookie(): string {
    return `alidade_view_${this.#port}`;
  }

  #isKey(key: string): boolean {
    return timingSafeEqual(Buffer.from(hashKey(key)), Buffer.from(this.#keyHash));
  }
}
