/** A route of the service: who may call it stands beside it. */
import type { z } from "zod";
import { defineRoute as define, type ListenerRoute } from "../../proxy/control/route.ts";
import type { AccessRole } from "../access.ts";

/** One of these roles is enough. */
type Guarded = { roles: readonly AccessRole[] };

export type ServiceRoute = ListenerRoute & Guarded;

/** Keeps the types of body and query for the handler. */
export const defineRoute = <Body extends z.ZodType, Query extends z.ZodType>(route: ListenerRoute<Body, Query> & Guarded): ServiceRoute =>
  define<ServiceRoute, Body, Query>(route);
