/**
 * A name that leads to no engine is a slip of the operator's, so it is said before the first sandbox is made, or the
 * session opened, and not by every call. Engines of `serve` come and go, so there a route may name one that is to come.
 */
import { AlidadeError, type ErrorCode } from "../../base/errors.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { EngineSlot } from "./engine-slot.ts";
import { type EngineRoute, routeFor } from "./routes.ts";
import { isFor, ruled, servedNames } from "./serving.ts";

/** For a run. Throws `config_invalid` naming the field. `model`: the one that sessions train; null where none is named. */
export function assertServed(all: readonly EngineSlot[], routes: readonly EngineRoute[], model: string | null): void {
  assertRoutes(all, routes);
  const train = all.filter((slot) => slot.purpose === "train");
  if (train.length === 0 && !routes.some(({ sandboxed }) => sandboxed))
    throw new AlidadeError(
      "config_invalid",
      `engines has no engine with purpose train (there are: ${all.map(({ name, purpose }) => `${name}, ${purpose}`).join("; ")}): set purpose: train at the one that serves the policy`,
      { param: "engines" },
    );
  if (model !== null) assertModel(train, routes, model, "config_invalid");
}

/** Throws `config_invalid` for a route to an engine that is not there. */
export function assertRoutes(all: readonly EngineSlot[], routes: readonly EngineRoute[]): void {
  const [stray] = strayRoutes(all, routes);
  if (stray) throw new AlidadeError("config_invalid", stray.message, { param: stray.param });
}

/** The routes' names of engines that are not there. */
export function strayRoutes(all: readonly EngineSlot[], routes: readonly EngineRoute[]): { param: string; message: string }[] {
  const names = all.map(({ name }) => name);
  return routes.flatMap(({ engine }, index) => {
    const unknown = [engine ?? []].flat().filter((name) => !names.includes(name));
    const param = `routes.${index}.engine`;
    return unknown.map((name) => ({
      param,
      message: `${param} is "${name}": no engine has this name; there are: ${names.join(", ") || "none"}`,
    }));
  });
}

/** Throws `request_invalid` for a model that no engine of the session's serves. Where there is no engine at all they are to come. */
export function assertModelOf(
  { model, sandboxed }: Partial<Pick<SessionSpec, "model" | "sandboxed">>,
  all: readonly EngineSlot[],
  routes: readonly EngineRoute[],
): void {
  const own = sandboxed ? all.filter((slot) => slot.purpose === "train") : all;
  if (model != null && own.length > 0) assertModel(own, routes, model, "request_invalid");
}

function assertModel(slots: readonly EngineSlot[], routes: readonly EngineRoute[], model: string, code: ErrorCode): void {
  const route = routeFor(routes, { model, agent: "main", request_class: "main" });
  if (route?.engine_model !== undefined) return;
  // If its engine takes no calls at the moment, the call itself is refused.
  if (ruled(slots, model, route).some((slot) => isFor(slot, model))) return;
  throw new AlidadeError(code, `model is "${model}": no engine serves it; they serve ${servedNames(slots)}`, { param: "model" });
}
