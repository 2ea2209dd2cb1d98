/**
 * The HTTP face for harnesses: the dialects' routes, at the root and below `/s/<key>`. Which session a request belongs
 * to is known by its connection (a sandbox's door), else by the path, else by the API key, and by nothing else.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono } from "hono";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { withBytes } from "../../base/media/media.ts";
import { GrowingJson } from "../../base/wire/growing-json.ts";
import { answerFromRecord } from "../calls/from-record/answer-from-record.ts";
import { sessionRecord } from "../calls/from-record/session-record.ts";
import { givenPlace } from "../calls/given-place.ts";
import { handleCall, refuseCall } from "../calls/handle-call.ts";
import type { CallSurroundings } from "../calls/surroundings.ts";
import type { Address, Dialect, Headers, Route } from "../dialects/index.ts";
import { dialects } from "../dialects/index.ts";
import { continueFrom } from "../restore/continue-from.ts";
import { restore } from "../restore/restore.ts";
import { assertSpoken } from "../sandboxed/own-dialects.ts";
import { assertImagesInside } from "../sandboxed/sandboxed-request.ts";
import { assertReferencesInside } from "../sandboxed/schema-references.ts";
import { withoutGrammar } from "../sandboxed/without-grammar.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import { answerToolRequest } from "../tools/answer-tool-request.ts";
import type { ToolRelay } from "../tools/tool-relay.ts";
import { BodyReader, type BodyShape } from "./body-reader.ts";
import type { Bounds } from "./bounds.ts";
import { Doors } from "./doors.ts";
import { Gate } from "./gate.ts";
import { HttpExchange } from "./http-exchange.ts";
import { closeListener, type HttpServer, listenOn, serverOf } from "./listen.ts";
import { dialectByKey, errorAt, methodsByPath, noRoute, noWebSocket } from "./no-route.ts";
import { RequestBytes } from "./request-bytes.ts";
import type { TlsPair } from "./tls-files.ts";

export type ClientTimeouts = {
  /** A client that has not sent its headers by then is not a harness (slowloris). */
  headersMs: number;
  /** A 64 MiB body over a slow door still arrives in this. */
  requestMs: number;
  /** After this time the kernel checks whether a silent client still exists (its machine may have lost power). */
  silentMs: number;
};
const usualTimeouts: ClientTimeouts = { headersMs: 30_000, requestMs: 300_000, silentMs: 60_000 };

type HarnessEnv = { Bindings: HttpBindings };

export class HarnessListener implements AsyncDisposable {
  readonly #server: HttpServer;
  readonly #tls: TlsPair | undefined;
  readonly #sessions: Sessions;
  readonly #surroundings: CallSurroundings;
  readonly #gate: Gate;
  readonly #bodies: BodyReader;
  readonly #doors: Doors;
  readonly #relays = new WeakMap<Session, ToolRelay>();

  constructor(sessions: Sessions, surroundings: CallSurroundings, bounds: Bounds, timeouts: Partial<ClientTimeouts> = {}, tls?: TlsPair) {
    this.#gate = new Gate(bounds);
    this.#bodies = new BodyReader(this.#gate);
    this.#doors = new Doors(this.#gate);
    this.#sessions = sessions;
    this.#surroundings = surroundings;
    const { headersMs, requestMs, silentMs } = { ...usualTimeouts, ...timeouts };
    const serve = getRequestListener(this.#app().fetch, { overrideGlobalObjects: false });
    this.#tls = tls;
    this.#server = serverOf(
      {
        keepAliveTimeout: 65_000,
        headersTimeout: headersMs,
        requestTimeout: requestMs,
        connectionsCheckingInterval: headersMs / 2,
        keepAlive: true,
        keepAliveInitialDelay: silentMs,
      },
      (incoming, outgoing) => this.#doors.inOrder(incoming, outgoing, () => void serve(incoming, outgoing)),
      tls,
    );
  }

  listen(host: string, port: number): Promise<string> {
    return listenOn(this.#server, host, port, this.#tls);
  }

  /** A connection of this session; it needs no key, and speaks no TLS. */
  attach(session: Session, socket: Duplex): void {
    const event = this.#tls ? "secureConnection" : "connection";
    if (this.#doors.admit(session, socket)) this.#server.emit(event, socket as Socket);
  }

  /** Connections of this session reach these tools at `/mcp/<server>`. */
  offerTools(session: Session, relay: ToolRelay): void {
    this.#relays.set(session, relay);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeListener(this.#server);
    await this.#bodies[Symbol.asyncDispose]();
  }

  #app(): Hono<HarnessEnv> {
    const app = new Hono<HarnessEnv>();
    for (const base of ["", "/s/:key"]) {
      for (const dialect of dialects)
        for (const route of dialect.routes) app.on(route.method, base + route.path, (context) => this.#serve(context, dialect, route));
      for (const [path, allow] of methodsByPath())
        app.options(base + path, async (context) => {
          using _ = await this.#placeAt(context.env.incoming as IncomingMessage);
          return context.body(null, 204, { allow });
        });
    }
    app.all("/mcp/:server", (context) => this.#serveTools(context));
    app.notFound(async (context) => {
      using _ = await this.#placeAt(context.env.incoming as IncomingMessage);
      const answer = noRoute(context.req.method, context.req.path, flatten(context.env.incoming as IncomingMessage));
      return context.json(answer.body as object, answer.status as 404, answer.headers);
    });
    app.onError((error, context) => {
      if (error instanceof AlidadeError) {
        const answer = errorAt(context.req.path, flatten(context.env.incoming as IncomingMessage), error);
        return context.json(answer.body as object, answer.status as 429, answer.headers);
      }
      this.#surroundings.onError(error, "serving a harness");
      return context.json({ error: { message: "internal error of the proxy", type: "server_error", code: "internal" } }, 500);
    });
    return app;
  }

  async #serve(context: Context<HarnessEnv>, owner: Dialect, route: Route): Promise<Response> {
    const { incoming, outgoing } = context.env as { incoming: IncomingMessage; outgoing: ServerResponse };
    const headers = flatten(incoming);
    const asker = route.kind === "models" || route.kind === "model" ? dialectByKey(headers) : undefined;
    const dialect = asker?.model ? asker : owner;
    const { key, ...params } = context.req.param() as Record<string, string>;
    const address: Address = { params, query: context.req.query() };
    const addressed = dialect.address?.(address);
    const exchange = new HttpExchange(dialect, headers, new RequestBytes(incoming), outgoing, addressed?.framing);
    const needsNone = route.kind === "hello" || route.kind === "websocket";
    let known: Session | null = null;
    try {
      const keyed = this.#doors.sessionOf(incoming) ?? (needsNone ? null : this.#resolve(headers, address, key, dialect));
      known = keyed;
      if (keyed) this.#doors.count(keyed, incoming.socket);
      using _ = keyed && (await this.#gate.enter(keyed, exchange.signal));
      const session = keyed && (await this.#sessions.within(keyed, givenPlace(keyed.spec, headers)));
      known = session;
      if (session) assertSpoken(session.spec, owner, route);
      if (route.kind === "hello") await exchange.sendEmpty();
      else if (session === null || route.kind === "websocket") throw noWebSocket(headers);
      else {
        if (route.kind === "models" || route.kind === "model") await this.#models(session, exchange, params.id);
        else if (route.kind === "record") await this.#fromRecord(session, exchange, route, address);
        else {
          const read = () => this.#body(session, exchange, { ...addressed?.fields, ...route.fields });
          if (route.kind === "count_tokens") await this.#countTokens(session, exchange, await read());
          else {
            exchange.body = await read();
            known = await this.#sessions.within(keyed ?? session, givenPlace(session.spec, headers, exchange.body));
            await handleCall(known, exchange, this.#surroundings);
          }
        }
      }
    } catch (error) {
      // Anything else is a client that left in the middle of its body; it gets no answer.
      if (known && route.kind === "generate" && error instanceof AlidadeError) await refuseCall(known, exchange, error, this.#surroundings);
      else if (!exchange.headersSent) await exchange.send(dialect.error(asAlidadeError(error, "internal")));
    }
    return RESPONSE_ALREADY_SENT;
  }

  /** Tools are a sandbox's: the connection says whose, and no key does. */
  async #serveTools(context: Context<HarnessEnv>): Promise<Response> {
    const { incoming, outgoing } = context.env as { incoming: IncomingMessage; outgoing: ServerResponse };
    const session = this.#doors.sessionOf(incoming);
    const relay = session && this.#relays.get(session);
    const server = context.req.param("server") ?? "";
    if (!session || !relay?.servers.includes(server)) return context.notFound();
    await answerToolRequest({ session, relay, server, gate: this.#gate, incoming, outgoing });
    return RESPONSE_ALREADY_SENT;
  }

  /** For what needs no session: a door's requests have theirs all the same. */
  #placeAt(incoming: IncomingMessage): Promise<Disposable> | null {
    const session = this.#doors.sessionOf(incoming);
    return session ? this.#gate.enter(session, new AbortController().signal) : null;
  }

  /** The body with what the address adds. */
  async #body(session: Session, exchange: HttpExchange, fields: Record<string, unknown>): Promise<unknown> {
    const { conversation = "", verbatim } = exchange.dialect;
    // A sealed session has no next request that this one could stand in.
    const bodies = conversation !== "" && session.sealed === null ? session.sent.bodies : new GrowingJson();
    const body = await this.#read(session, exchange, { bodies, field: conversation, keys: verbatim });
    return isObject(body) ? { ...body, ...fields } : body;
  }

  async #read(session: Session, exchange: HttpExchange, shape: BodyShape): Promise<unknown> {
    const pieces = await this.#gate.read(session, exchange, shape.bodies.longest);
    await this.#gate.turn(session, exchange.signal);
    return this.#bodies.read(session, pieces, shape, exchange.signal);
  }

  /** All models, or the requested one. */
  async #models(session: Session, exchange: HttpExchange, id: string | undefined): Promise<void> {
    const { pool } = this.#surroundings;
    if (id !== undefined) await pool.lookFor({ session, model: id, agent: "main", request_class: "main" }, exchange.signal);
    const models = pool.modelsFor(session);
    if (id !== undefined && !models.includes(id))
      throw new AlidadeError("model_unknown", `The model "${id}" is not served here; ${models.join(", ")} is.`, { param: "model" });
    const { dialect } = exchange;
    const body = id === undefined ? dialect.models?.(models) : dialect.model?.(id);
    await exchange.send({ status: 200, headers: {}, body: body ?? {} });
  }

  async #fromRecord(session: Session, exchange: HttpExchange, route: Route, { params, query }: Address): Promise<void> {
    const body = exchange.bytes.declared === 0 ? null : await this.#read(session, exchange, { bodies: new GrowingJson(), field: "" });
    const request = { ...route, id: params.id ?? "", query, body };
    await session.running.answering(answerFromRecord(session, exchange, request, this.#gate));
  }

  /** Counts what the engine would get. A body without a model is a count for the one that is served. */
  async #countTokens(session: Session, exchange: HttpExchange, body: unknown): Promise<void> {
    const { pool } = this.#surroundings;
    const { dialect, headers } = exchange;
    const named = isObject(body) ? { ...body, model: body.model ?? pool.modelsFor(session)[0] } : body;
    const request = dialect.parse(named, headers, sessionRecord(session, dialect), "count_tokens");
    const wish = { session, model: request.model, agent: "main", request_class: "main" as const };
    await pool.lookFor(wish, exchange.signal);
    const slot = pool.choose(wish);
    const { engine } = slot;
    const restored = continueFrom(session, request, restore(session, request.messages));
    const messages = withBytes(restored.messages, session.media);
    // Some servers fetch what a conversation names to count it, too.
    if (session.spec.sandboxed) {
      assertImagesInside(messages);
      assertReferencesInside(request);
    }
    if (!engine.countTokens || !exchange.dialect.countTokens)
      throw new AlidadeError("not_found", `the engine ${engine.name} cannot count tokens without generating`);
    const { model } = pool.routedModel(slot, wish);
    const { tools } = withoutGrammar(session.spec, request);
    const count = await engine.countTokens({ model, messages, tools }, exchange.signal);
    await exchange.send({ status: 200, headers: {}, body: exchange.dialect.countTokens(count) });
  }

  #resolve(headers: Headers, address: Address, pathKey: string | undefined, dialect: Dialect): Session {
    const key = pathKey ?? credential(headers, address, dialect);
    if (key === null) throw new AlidadeError("unauthorized", "no session key: put it in the path (/s/<key>/…) or send it as the API key");
    const session = this.#sessions.byKey(key);
    if (!session)
      throw new AlidadeError("unauthorized", "unknown session key: take one that `alidade serve` printed or POST /sessions returned");
    return session;
  }
}

function credential(headers: Headers, address: Address, dialect: Dialect): string | null {
  for (const carrier of dialect.credential) {
    if ("query" in carrier) {
      const value = address.query[carrier.query];
      if (value !== undefined) return value;
      continue;
    }
    const { header, scheme } = carrier;
    const value = headers[header];
    if (value === undefined) continue;
    if (scheme === undefined) return value;
    if (value.toLowerCase().startsWith(`${scheme.toLowerCase()} `)) return value.slice(scheme.length + 1).trim();
  }
  return null;
}

function flatten(incoming: IncomingMessage): Headers {
  return Object.fromEntries(
    Object.entries(incoming.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value]),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
