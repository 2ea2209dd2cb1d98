/** Routes of the operator and of weight updates. */
import { z } from "zod";
import { nothing, PauseBody, PolicyBody, statusCodeOf } from "../../proxy/control/index.ts";
import { ServiceControl } from "../fences/service-control.ts";
import { serviceHealth } from "../service-health.ts";
import type { ServiceParts } from "../service-parts.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

const FenceName = z.string().regex(/^[\w.:-]{1,100}$/, "letters, digits, dots, colons, dashes and underscores, at most 100");

const ServicePause = PauseBody.extend({
  fence: FenceName.optional().describe("a name of the trainer's own: asked for again it is the same fence; default: a new one"),
});
const ServicePolicy = PolicyBody.extend({ fence: FenceName.optional() });

export function operatorRoutes(parts: ServiceParts): ServiceRoute[] {
  const { ledger } = parts;
  const control = new ServiceControl(ledger);
  return [
    defineRoute({
      method: "post",
      path: "/control/pause",
      roles: ["control"],
      title:
        "Shuts the gate of the engines at all nodes; answers when the running calls have ended (drain, abort) or left their engines (continue), at once for hold",
      body: ServicePause,
      handle: ({ body, signal }) => control.pause(body, signal),
    }),
    defineRoute({
      method: "put",
      path: "/control/policy",
      roles: ["control"],
      title: "Names the weights at all nodes, or at none: a 409 where an engine says that it serves others",
      body: ServicePolicy,
      handle: ({ body: { fence, engines, engine_version, ...policy }, signal }) =>
        control.setPolicy({ policy, fence, engines, engineVersion: engine_version }, signal),
    }),
    defineRoute({
      method: "post",
      path: "/control/resume",
      roles: ["control"],
      title: "Opens the gate at all nodes; a 409 where an engine says that it serves other weights than their name",
      body: z.strictObject({ fence: FenceName }),
      // A trainer that has left wants the gate open all the same.
      handle: ({ body }) => control.resume(body.fence, new AbortController().signal),
    }),
    defineRoute({
      method: "get",
      path: "/nodes",
      roles: ["read", "node"],
      title: "The nodes at work",
      handle: async () => ({ nodes: await ledger.nodes() }),
    }),
    defineRoute({
      method: "post",
      path: "/nodes/:name/drain",
      roles: ["control", "node"],
      title: "The node ends what it has begun and claims no more",
      body: nothing,
      handle: async ({ param }) => {
        await ledger.drainNode(param("name"));
        return { name: param("name"), is_draining: true };
      },
    }),
    defineRoute({
      method: "get",
      path: "/health",
      roles: ["read", "node"],
      title:
        "`ok`; `degraded` or `paused` with the `reason` why rollouts do not go on; or `down` (503) where the ledger does not answer and nothing can be asked",
      handle: async ({ context, signal }) => {
        const { health, ...state } = await serviceHealth(parts, control, signal);
        return context.json({ ...health, ...state }, statusCodeOf(health));
      },
    }),
  ];
}
