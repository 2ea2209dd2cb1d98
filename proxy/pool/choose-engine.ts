/**
 * Chooses the engine of a call. The rules must allow the engine, and it must serve the call's model and policy. Prefers the engine
 * that holds the prefix of the session, or of the recording that it forks. Otherwise takes the engine with the least to do.
 */
import { AlidadeError } from "../../base/errors.ts";
import { nameOfPolicy, type Policy, samePolicy } from "../../base/schema/policy.ts";
import { assertTrainable, type EngineSlot } from "./engine-slot.ts";
import { type ModelPlace, type Placed, placeOf, type Wish } from "./own-model.ts";
import type { EngineRoute } from "./routes.ts";
import { forModel, isKnown, modelAt, routedPolicy, ruled, unknownModel } from "./serving.ts";

/** The model of a call at one engine: the engine's own name of it, and the policy of its weights where the route names one. */
export type RoutedModel = { model: string; routed: Policy | null };

/** Classes that are trained under no policy: a text-only engine may take them in a training session too, where no hostile client names them. */
const neverTrained: ReadonlySet<string> = new Set(["title", "topic", "quota", "check"]);

/**
 * The engines that may take this call, with open or closed gates. Throws `engine_unreachable` where the rules leave none,
 * `engine_without_token_ids`; `model_unknown` if no engine serves the name or `name@step`, or if the model does not belong to a
 * sandboxed session; and `policy_gone` for a pinned session if no engine has its policy any more.
 */
export function candidates(all: readonly EngineSlot[], routes: readonly EngineRoute[], wish: Wish): EngineSlot[] {
  const { session, request_class } = wish;
  const place = placeOf(all, routes, wish);
  const { model, route, among } = place;
  let slots = ruled(among, model, route);
  if (among.length > 0 && !mayLead(slots, place, session)) throw unknownModel(among, model);
  if (slots.length === 0) throw noEngine(among, model, route);
  if (session.spec.purpose === "train" && (session.spec.sandboxed || !neverTrained.has(request_class))) {
    const [untrained] = slots;
    slots = slots.filter((slot) => slot.facts.missing === null || slot.purpose !== "train");
    if (slots.length === 0 && untrained) assertTrainable(untrained.facts);
  }
  slots = forModel(slots, model, route).filter((slot) => !slot.isDraining);
  if (slots.length === 0) throw noEngine(among, model, route);
  const { pinned } = session.placement;
  if (pinned === null) return slots;
  const policyAt = (slot: EngineSlot): Policy | null => routedPolicy(slot, model, route) ?? slot.policy;
  const same = slots.filter((slot) => samePolicy(policyAt(slot), pinned));
  if (same.length > 0) return same;
  throw new AlidadeError(
    "policy_gone",
    `this session is pinned to policy ${nameOfPolicy(pinned)}, which no engine serves (there are: ${[...new Set(slots.map((slot) => nameOfPolicy(policyAt(slot))))].join(", ")}): open another one`,
  );
}

/** True if an engine serves the wished model, or if the session takes any name: then engines need not be asked again. */
export function isServed(all: readonly EngineSlot[], routes: readonly EngineRoute[], wish: Wish): boolean {
  const { session } = wish;
  if (session.spec.sandboxed || session.spec.any_model) return true;
  const place = placeOf(all, routes, wish);
  return mayLead(ruled(place.among, place.model, place.route), place, session);
}

/** In a sandbox, or with `any_model`, names that a harness chooses itself mean the session's model. */
function mayLead(slots: readonly EngineSlot[], { model, route }: ModelPlace, { spec }: Placed): boolean {
  return spec.sandboxed || spec.any_model || isKnown(slots, model, route);
}

/**
 * One of them: where its gate is shut, or it is full, the call waits there. `avoid` are those that have just failed this call,
 * taken only where there is no other.
 */
export function pick(among: EngineSlot[], { session, near = [] }: Wish, avoid: ReadonlySet<EngineSlot>): EngineSlot {
  const fresh = among.filter((slot) => !avoid.has(slot));
  const open = fresh.filter((slot) => slot.gate === null && !slot.breaker.isOpen);
  // Where all of them are unwell the call still goes to one: its own error is the truth about it.
  const well = [open, fresh, among].find((list) => list.length > 0) as EngineSlot[];
  const roomy = well.filter((slot) => slot.hasRoom);
  const best = roomy.length > 0 ? roomy : well;
  for (const name of [...near, ...session.placement.engineNames]) {
    const home = best.find((slot) => slot.name === name);
    if (home) return home;
  }
  return leastLoaded(best);
}

/** The model that this engine serves the call with. */
export function routedModelOf(slot: EngineSlot, all: readonly EngineSlot[], routes: readonly EngineRoute[], wish: Wish): RoutedModel {
  const { model, route } = placeOf(all, routes, wish);
  return { model: modelAt(slot, model, route), routed: routedPolicy(slot, model, route) };
}

/** Among equally busy engines: the one whose last call is the oldest. */
function leastLoaded(slots: EngineSlot[]): EngineSlot {
  return slots.reduce((best, slot) => {
    const difference = loadOf(slot) - loadOf(best) || slot.lastLease - best.lastLease;
    return difference < 0 ? slot : best;
  });
}

function loadOf({ inFlight, waiting }: EngineSlot): number {
  return inFlight.size + waiting;
}

function noEngine(all: readonly EngineSlot[], model: string, route: EngineRoute | null): AlidadeError {
  const names = all.map((slot) => `${slot.name}${slot.isDraining ? " (draining)" : ""}`).join(", ") || "none";
  const rule = route?.engine === undefined ? "" : ` (its route names ${[route.engine].flat().join(", ")})`;
  return new AlidadeError("engine_unreachable", `there is no engine for model "${model}"${rule}; engines: ${names}`);
}
