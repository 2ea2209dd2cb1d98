/** All routes of a service but those for bridges of Polar. */
import { Histogram } from "../../base/wire/histogram.ts";
import type { ServiceParts } from "../service-parts.ts";
import { SetPasses } from "../set-passes.ts";
import { SetTallies } from "../set-tallies.ts";
import { blobRoutes } from "./blob-routes.ts";
import { driftRoute } from "./drift-route.ts";
import { figureRoute } from "./figure-route.ts";
import { metricsRoute } from "./metrics-route.ts";
import { operatorRoutes } from "./operator-routes.ts";
import { passRateRoute } from "./pass-rate-route.ts";
import { resultRoutes } from "./result-routes.ts";
import type { ServiceRoute } from "./route.ts";
import { setRoutes } from "./set-routes.ts";

export function serviceRoutes(parts: ServiceParts): ServiceRoute[] {
  const tallies = new SetTallies(parts.ledger);
  const passes = new SetPasses(parts.ledger);
  const lag = new Histogram("alidade_result_lag_seconds", "From the end of a rollout to each reading of its result.");
  const looks = [figureRoute(tallies), passRateRoute(passes), driftRoute(parts), metricsRoute(parts, tallies, lag)];
  return [...setRoutes(parts, passes), ...resultRoutes(parts, lag), ...operatorRoutes(parts), ...blobRoutes(parts), ...looks];
}
