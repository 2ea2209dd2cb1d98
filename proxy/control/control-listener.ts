/**
 * The HTTP face for trainers and operators: sessions are minted, sealed, rewarded and read, engines come and go, and
 * weight updates are fenced (control-engines.ts).
 * It is another listener with a token of its own, on loopback unless told otherwise, and no sandbox can reach it.
 */

import { timingSafeEqual } from "node:crypto";
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { z } from "zod";
import { keepSecret } from "../../engines/index.ts";
import { AlidadeError, asAlidadeError } from "../../errors.ts";
import { hashKey } from "../../schema/ids.ts";
import { RewardComponent } from "../../schema/reward-component.ts";
import { NewSession } from "../../schema/session-spec.ts";
import { type MetricFamily, prometheusText, prometheusType } from "../../wire/prometheus-text.ts";
import { closeListener, listenOn } from "../http/listen.ts";
import type { Session } from "../session/session.ts";
import { body, type ControlEnv } from "./control-body.ts";
import { engineRoutes } from "./control-engines.ts";
import type { Controlled } from "./controlled.ts";
import { engineMetrics } from "./engine-metrics.ts";

const Reward = z.strictObject({
  reward: z.number().nullable(),
  components: z.record(z.string(), z.number().nullable()).default({}),
  scoped_components: z.array(RewardComponent).default([]),
});
const Seal = z.strictObject({ reason: z.string().max(200).default("sealed over the control listener") });

export class ControlListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #proxy: Controlled;
  readonly #tokenHash: string;

  constructor(proxy: Controlled, token: string) {
    this.#proxy = proxy;
    this.#tokenHash = hashKey(token);
    keepSecret(token);
    this.#server = createServer(
      { headersTimeout: 30_000, requestTimeout: 60_000 },
      getRequestListener(this.#app().fetch, { overrideGlobalObjects: false }),
    );
  }

  listen(host: string, port: number): Promise<string> {
    return listenOn(this.#server, host, port);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeListener(this.#server);
  }

  #app(): Hono<ControlEnv> {
    const proxy = this.#proxy;
    const app = new Hono<ControlEnv>();
    app.use(async (context, next) => {
      if (!this.#mayEnter(context.req.header("authorization")))
        throw new AlidadeError("unauthorized", "the control listener wants its token as `Authorization: Bearer …`");
      await next();
    });
    app.get("/health", (context) => context.json(health(proxy)));
    app.get("/metrics", (context) => context.text(prometheusText(metricsOf(proxy)), 200, { "content-type": prometheusType }));
    app.get("/sessions", (context) =>
      context.json({
        sessions: inOrder(proxy.sessions.all()).map(({ id, spec, callCount, sealed }) => ({
          session_id: id,
          purpose: spec.purpose,
          rollout_id: spec.rollout_id,
          attempt: spec.attempt,
          member: spec.member,
          calls: callCount,
          sealed,
        })),
      }),
    );
    app.get("/sessions/:id", (context) => context.json(describe(proxy.session(context.req.param("id")))));
    app.delete("/sessions/:id", async (context) => {
      const session = proxy.session(context.req.param("id"));
      await proxy.sessions.close(session, "deleted over the control listener");
      return context.json({ session_id: session.id, deleted: true });
    });
    app.post("/sessions", async (context) => {
      const { session, key } = await proxy.openSession(await body(context, NewSession));
      return context.json({ session_id: session.id, attempt: session.spec.attempt, key, env: proxy.envOf(key) }, 201);
    });
    app.post("/sessions/:id/seal", async (context) => {
      const { reason } = await body(context, Seal);
      const session = proxy.session(context.req.param("id"));
      await session.seal(reason);
      // The first reason, where it was sealed already: that one is in the log.
      return context.json({ session_id: session.id, sealed: session.sealed });
    });
    app.post("/sessions/:id/reward", async (context) => {
      const id = proxy.idOf(context.req.param("id"));
      const { reward, components, scoped_components } = await body(context, Reward);
      return context.json({ session_id: id, revision: await proxy.reward(id, reward, components, scoped_components) });
    });
    app.get("/sessions/:id/trajectory", async (context) => context.json(await proxy.trajectory(context.req.param("id"))));
    engineRoutes(app, proxy);
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

function health(proxy: Controlled) {
  const fences = proxy.fences.status();
  const unwell = proxy.pool.slots.some((slot) => slot.breaker.isOpen);
  return {
    status: fences.some((fence) => fence.alarm) ? "alarm" : fences.length > 0 ? "paused" : unwell ? "degraded" : "ok",
    engine: proxy.pool.slots[0]?.facts ?? null,
    engines: proxy.pool.slots.map((slot) => slot.describe()),
    policy: proxy.policy,
    fences,
    waiting: proxy.pool.waiting,
    sessions: proxy.sessions.all().length,
  };
}

function metricsOf({ pool, fences, sessions }: Controlled): MetricFamily[] {
  const gauge = (name: string, help: string, value: number): MetricFamily => ({
    name,
    type: "gauge",
    help,
    samples: [{ labels: {}, value }],
  });
  return [
    gauge("alidade_sessions", "Sessions that the proxy has open or sealed.", sessions.all().length),
    gauge("alidade_waiting_calls", "Calls that wait at a shut gate.", pool.waiting),
    gauge("alidade_fences", "Fences that are shut for new weights.", fences.status().length),
    ...engineMetrics(pool.slots.map((slot) => slot.describe())),
  ];
}

/** As they were opened: after a restart they come in the order of the store's files. */
function inOrder(sessions: Session[]): Session[] {
  return sessions.toSorted((a, b) => a.state.opened.time - b.state.opened.time);
}

function describe(session: Session) {
  const { id, spec, callCount, sealed, placement, state, running } = session;
  return {
    session_id: id,
    spec,
    calls: callCount,
    in_flight: running.inFlight().length,
    engine: placement.engineNames[0] ?? null,
    pinned: placement.pinned,
    sealed,
    stop_reason: state.stopReason,
    last_error: state.lastError,
    reward_revision: state.revision,
    opened: state.opened.time,
  };
}

function answerError(context: Context<ControlEnv>, error: AlidadeError): Response {
  return context.json({ error: error.toJSON() }, error.status as 400);
}
