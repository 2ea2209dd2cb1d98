/**
 * A run's engines are all there when it begins. A name that leads to none of them is a slip of the operator's, so it is
 * said before the first sandbox is made and not by every rollout.
 */
import { AlidadeError } from "../../errors.ts";
import type { EngineSlot } from "./engine-slot.ts";
import { type EngineRoute, routeFor } from "./routes.ts";
import { plainName, ruled } from "./serving.ts";

/** Throws `config_invalid` naming the field. `model`: the one that sessions train; null where none is named. */
export function assertServed(all: readonly EngineSlot[], routes: readonly EngineRoute[], model: string | null): void {
  for (const [index, { engine }] of routes.entries()) assertNamed(all, index, engine);
  const train = all.filter((slot) => slot.purpose === "train");
  if (train.length === 0 && !routes.some(({ sandboxed }) => sandboxed))
    throw new AlidadeError(
      "config_invalid",
      `engines has no engine with purpose train (there are: ${all.map(({ name, purpose }) => `${name}, ${purpose}`).join("; ")}): set purpose: train at the one that serves the policy`,
      { param: "engines" },
    );
  if (model === null) return;
  const route = routeFor(routes, { model, agent: "main", request_class: "main" });
  if (route?.engine_model !== undefined) return;
  if (ruled(train, model, route).some((slot) => isFor(slot, model))) return;
  const served = [...new Set(train.flatMap((slot) => slot.facts.models))];
  throw new AlidadeError("config_invalid", `model is "${model}": no engine serves it; they serve ${served.join(", ")}`, { param: "model" });
}

function assertNamed(all: readonly EngineSlot[], index: number, engine: EngineRoute["engine"]): void {
  const unknown = [engine ?? []].flat().find((name) => all.every((slot) => slot.name !== name));
  if (unknown === undefined) return;
  const param = `routes.${index}.engine`;
  throw new AlidadeError(
    "config_invalid",
    `${param} is "${unknown}": no engine has this name; there are: ${all.map(({ name }) => name).join(", ")}`,
    { param },
  );
}

/** By its name, by the operator's globs, or because the engine lists no models. */
function isFor(slot: EngineSlot, model: string): boolean {
  return slot.models !== null || slot.facts.models.length === 0 || slot.serves(model) || slot.serves(plainName(model));
}
