/**
 * Lets a browser read pages below `/view` with a token of the role `read`. A browser sends no `Authorization`: its reader
 * gives the token once, and a cookie of these pages keeps a key that is made of it and opens nothing else.
 */
import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { type AlidadeError, asAlidadeError } from "../base/errors.ts";
import { type ControlEnv, callerLeft } from "../proxy/control/index.ts";
import { RequestBytes } from "../proxy/http/index.ts";
import { type Access, type AccessToken, pageKeyOf, tokenOf } from "./access.ts";
import type { Caller } from "./callers/caller.ts";

/** `path`: what stands behind `/view/`, without its query. */
export type PageRequest = { path: string; request: Request; env: HttpBindings };

/** Makes the pages. They stand in a storey above the service. */
export interface ServicePages {
  answer(request: PageRequest, caller: Pick<Caller, "ledger">): Promise<Response>;
  /** `error`: what was wrong with the token; null: none came. */
  signIn(error: AlidadeError | null): Response;
  asset(name: string): Promise<Response>;
}

/** A form with a token. */
const mostFormBytes = 10_000;
const formMs = 10_000;
const cookieName = "alidade_view";

export class PageDoor {
  readonly #pages: ServicePages;
  readonly #access: Access;
  readonly #callerOf: (token: AccessToken) => Caller;
  readonly #isSecure: boolean;
  readonly #stopped: AbortSignal;

  /** `isSecure`: the listener speaks TLS. */
  constructor(pages: ServicePages, access: Access, callerOf: (token: AccessToken) => Caller, isSecure: boolean, stopped: AbortSignal) {
    this.#pages = pages;
    this.#access = access;
    this.#callerOf = callerOf;
    this.#isSecure = isSecure;
    this.#stopped = stopped;
  }

  mount(app: Hono<ControlEnv>): void {
    app.get("/view", (context) => context.redirect("/view/", 308));
    app.get("/view/assets/:name", (context) => this.#pages.asset(context.req.param("name")));
    app.post("/view/sign-in", (context) => this.#signIn(context));
    app.get("/view/*", (context) => this.#answer(context));
  }

  async #answer(context: Context<ControlEnv>): Promise<Response> {
    let token: AccessToken;
    try {
      token = this.#tokenOf(context);
    } catch (error) {
      return this.#pages.signIn(asAlidadeError(error, "unauthorized"));
    }
    const path = context.req.path.slice("/view/".length);
    const caller = this.#callerOf(token);
    const asked = { path, request: context.req.raw, env: context.env };
    if (!path.endsWith("/events")) return this.#pages.answer(asked, caller);
    // It stays open, as a stream of results does, and counts as one.
    const leave = caller.openStream();
    AbortSignal.any([callerLeft(context), this.#stopped]).addEventListener("abort", leave, { once: true });
    const answer = await this.#pages.answer(asked, caller);
    if (!answer.ok) leave();
    return answer;
  }

  #tokenOf(context: Context<ControlEnv>): AccessToken {
    const given = tokenOf((name) => context.req.header(name));
    const kept = getCookie(context, cookieName) ?? "";
    return given === "" && kept !== "" ? this.#access.assertPageKey(kept, ["read"]) : this.#access.assert(given, ["read"]);
  }

  async #signIn(context: Context<ControlEnv>): Promise<Response> {
    const pieces = await new RequestBytes(context.env.incoming).read({ limit: mostFormBytes, withinMs: formMs });
    const text = new URLSearchParams(Buffer.concat(pieces).toString("utf8")).get("token") ?? "";
    try {
      this.#access.assert(text, ["read"]);
    } catch (error) {
      return this.#pages.signIn(asAlidadeError(error, "unauthorized"));
    }
    const path = "/view";
    setCookie(context, cookieName, pageKeyOf(text), { httpOnly: true, sameSite: "Lax", secure: this.#isSecure, path });
    return context.redirect("/view/", 303);
  }
}
