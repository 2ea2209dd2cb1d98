/** A route of the service: who may call it stands beside it, and who does call it comes with each request. */
import type { z } from "zod";
import type { ListenerRoute, RouteRequest } from "../../proxy/control/index.ts";
import type { AccessRole } from "../access.ts";
import type { Caller } from "../callers/caller.ts";

export type ServiceRoute<Body extends z.ZodType = z.ZodType, Query extends z.ZodType = z.ZodType> = Omit<
  ListenerRoute<Body, Query>,
  "handle"
> & {
  /**
   * Largest number of bytes of the request's body in memory at once, if the route passes them on as they come. Absent: the whole body.
   * For a GET: of its answer. Absent: few.
   */
  heldBytes?: number;
  /** One of these is enough. */
  roles: readonly AccessRole[];
  /** Whatever belongs to a trainer is reached by the caller's ledger alone. */
  handle(request: RouteRequest<z.infer<Body>, z.infer<Query>>, caller: Caller): Promise<unknown>;
};

/** Keeps the types of body and query for the handler. */
export function defineRoute<Body extends z.ZodType, Query extends z.ZodType>(route: ServiceRoute<Body, Query>): ServiceRoute {
  return route as unknown as ServiceRoute;
}
