/** The control listener's routes for sessions, and its health. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { RewardComponent } from "../../base/schema/reward-component.ts";
import { NewSession } from "../../base/schema/session-spec.ts";
import { gauge, type MetricFamily, prometheusText, prometheusType } from "../../base/wire/prometheus-text.ts";
import type { Session } from "../session/session.ts";
import type { Controlled } from "./controlled.ts";
import { engineMetrics } from "./engine-metrics.ts";
import { faultsOfProxy, healthOf, statusCodeOf } from "./health.ts";
import { defineRoute, type ListenerRoute } from "./route.ts";

const Reward = z.strictObject({
  reward: z.number().nullable().describe("null: nothing was measured"),
  components: z.record(z.string(), z.number().nullable()).default({}).describe("what the reward is made of, for the record"),
  scoped_components: z.array(RewardComponent).default([]).describe("rewards of a call, a branch or an agent"),
});
const Seal = z.strictObject({ reason: z.string().max(200).default("sealed over the control listener") });

export function sessionRoutes(proxy: Controlled): ListenerRoute[] {
  return [
    defineRoute({
      method: "get",
      path: "/health",
      title:
        "`ok`, `degraded` (an engine takes no calls), `paused`, `alarm` (a pause without a resume) or `down` (no engine takes calls), and the `reason`; engines, fences, waiting calls. 503 with `alarm` and `down`, else 200",
      handle: async ({ context }) => {
        const health = healthOf(faultsOfProxy(proxy));
        return context.json({ ...health, ...stateOf(proxy) }, statusCodeOf(health));
      },
    }),
    defineRoute({
      method: "get",
      path: "/metrics",
      title: "Sessions, fences and engines in Prometheus' text format",
      answers: [prometheusType],
      handle: async ({ context }) => context.text(prometheusText(metricsOf(proxy)), 200, { "content-type": prometheusType }),
    }),
    defineRoute({
      method: "get",
      path: "/sessions",
      title: "The open sessions, in the order of their opening",
      handle: async () => ({ sessions: inOrder(proxy.sessions.all()).map(listed) }),
    }),
    defineRoute({
      method: "post",
      path: "/sessions",
      title: "Mints a session: `{session_id, attempt, key, env}`",
      body: NewSession,
      status: 201,
      handle: async ({ body }) => {
        const { session, key } = await proxy.openSession(body);
        return { session_id: session.id, attempt: session.spec.attempt, key, env: proxy.envOf(key) };
      },
    }),
    defineRoute({
      method: "get",
      path: "/sessions/:id",
      title: "One session, by its id or its `rollout_id` (here and below: the rollout's last attempt)",
      handle: async ({ param }) => describe(proxy.session(param("id"))),
    }),
    defineRoute({
      method: "delete",
      path: "/sessions/:id",
      title: "Seals the session and drops it from memory; its log stays, and still takes a reward",
      handle: async ({ param }) => {
        const session = proxy.session(param("id"));
        await proxy.sessions.close(session, "deleted over the control listener");
        return { session_id: session.id, deleted: true };
      },
    }),
    defineRoute({
      method: "post",
      path: "/sessions/:id/seal",
      title: "Ends the session: no call comes in any more. A session that was sealed before keeps its first reason",
      body: Seal,
      handle: async ({ param, body }) => {
        const session = proxy.session(param("id"));
        await session.seal(body.reason);
        return { session_id: session.id, sealed: session.sealed };
      },
    }),
    defineRoute({
      method: "post",
      path: "/sessions/:id/reward",
      title: "Gives the session a reward; a second one is a new revision",
      body: Reward,
      handle: async ({ param, body: { reward, components, scoped_components } }) => {
        const id = proxy.idOf(param("id"));
        return { session_id: id, revision: await proxy.reward(id, reward, components, scoped_components) };
      },
    }),
    defineRoute({
      method: "get",
      path: "/sessions/:id/screen",
      title:
        "The screen of a running rollout as PNG, at most a second old. Its task has `environment.display`. You can only look: you cannot send a key or a click, and nothing is recorded",
      answers: ["image/png"],
      handle: async ({ param }) => {
        const { id, screen } = proxy.session(param("id"));
        if (screen === null)
          throw new AlidadeError("not_found", `session ${id} shows no screen: its task has no environment.display, or it is over`);
        const headers = { "content-type": "image/png", "cache-control": "no-store", "x-content-type-options": "nosniff" };
        return new Response(new Uint8Array(await screen.frame()), { headers });
      },
    }),
    defineRoute({
      method: "get",
      path: "/sessions/:id/trajectory",
      title: "The session's trajectory, as its log tells it now",
      handle: ({ param }) => proxy.trajectory(param("id")),
    }),
  ];
}

function stateOf(proxy: Controlled) {
  return {
    engine: proxy.pool.slots[0]?.facts ?? null,
    engines: proxy.pool.slots.map((slot) => slot.describe()),
    policy: proxy.policy,
    fences: proxy.fences.status(),
    waiting: proxy.pool.waiting,
    sessions: proxy.sessions.all().length,
  };
}

function metricsOf({ pool, fences, sessions, families }: Controlled): MetricFamily[] {
  return [
    gauge("alidade_sessions", "Sessions that the proxy has open or sealed.", sessions.all().length),
    gauge("alidade_waiting_calls", "Calls that wait at a shut gate.", pool.waiting),
    gauge("alidade_fences", "Fences that are shut for new weights.", fences.status().length),
    ...engineMetrics(pool.slots.map((slot) => slot.describe())),
    ...families(),
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
    has_screen: session.screen !== null,
    stop_reason: state.stopReason,
    last_error: state.lastError,
    reward_revision: state.revision,
    opened: state.opened.time,
  };
}

function listed({ id, spec, callCount, sealed }: Session) {
  return {
    session_id: id,
    purpose: spec.purpose,
    rollout_id: spec.rollout_id,
    attempt: spec.attempt,
    member: spec.member,
    calls: callCount,
    sealed,
  };
}
