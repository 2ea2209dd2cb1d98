/**
 * The model that a session trains, and whether a call is sampled by it. What a sandboxed agent names leads nowhere else:
 * its calls go where its own model goes, unless a rule of the operator's that is open to sandboxes says otherwise. What
 * another model sampled is on the record as such, in any session, and is never trained.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { Policy } from "../../base/schema/policy.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { EngineSlot } from "./engine-slot.ts";
import { type EngineRoute, type RouteQuestion, routeFor } from "./routes.ts";
import { modelAt, plainName, preferPolicy, ruled, stepOf } from "./serving.ts";

/** Where a session has been, which decides where its calls go. */
export type Placement = {
  /** The engines that hold prefixes of it, the last one first: its agents and classes may be at several. */
  readonly engineNames: readonly string[];
  /** Only when pinned: the policy that it was given, or that it began with; null before a call was let through. */
  readonly pinned: Policy | null;
  /** The model that it asked for first in its work, which is its own where it was given none, and the engine that took that call. */
  readonly began: { readonly model: string; readonly engine: string } | null;
};

/** What of a session the pool looks at. */
export type Placed = {
  readonly spec: Pick<SessionSpec, "purpose" | "policy_mode" | "pinned_policy" | "sandboxed" | "model" | "any_model">;
  readonly placement: Placement;
};

/** A call that needs an engine. `near`: engines that hold its prompt from another session, the best one first. */
export type Wish = RouteQuestion & { session: Placed; near?: readonly string[] | undefined };

/** What decides where a call goes: the model as it counts here, the rule for it, and the engines that there are for it. */
export type ModelPlace = { model: string; route: EngineRoute | null; among: readonly EngineSlot[] };

/** Throws `model_unknown` where a sandboxed client names a model that is there and not its own. */
export function placeOf(all: readonly EngineSlot[], routes: readonly EngineRoute[], { session, ...question }: Wish): ModelPlace {
  if (!session.spec.sandboxed) return { model: question.model, route: routeFor(routes, question), among: all };
  const open = routeFor(
    routes.filter(({ sandboxed }) => sandboxed),
    question,
  );
  if (open) return { model: question.model, route: open, among: all };
  const own = ownModel(all, session) ?? question.model;
  if (isAnother(all, own, question.model))
    throw new AlidadeError("model_unknown", `the model "${question.model.slice(0, 200)}" is not this session's: it has "${own}" alone`, {
      param: "model",
    });
  return { model: own, route: homeRoute(routes, own), among: all.filter((slot) => slot.purpose === "train") };
}

/** The session's model; null where its spec names none and no call of work has named one yet. */
export function ownModel(all: readonly EngineSlot[], { spec, placement }: Placed): string | null {
  if (spec.model !== null) return spec.model;
  return spec.sandboxed ? (preferPolicy(all)[0]?.facts.models[0] ?? null) : (placement.began?.model ?? null);
}

/** Does this engine, for this call, serve the session's own model? */
export function isOfPolicy(slot: EngineSlot, all: readonly EngineSlot[], routes: readonly EngineRoute[], wish: Wish): boolean {
  if (slot.purpose !== "train") return false;
  const own = ownModel(all, wish.session);
  if (own === null) return true;
  const route = homeRoute(routes, own);
  const slots = ruled(all, own, route);
  const home = slots.find(({ name }) => name === wish.session.placement.began?.engine) ?? preferPolicy(slots)[0];
  if (home === undefined) return false;
  const served = modelAt(home, own, route);
  if (!servingOwn(slots, served).includes(slot)) return false;
  const requested = placeOf(all, routes, wish);
  const isSameName = plainName(requested.route?.engine_model ?? requested.model) === plainName(route?.engine_model ?? own);
  return isSameName || plainName(modelAt(slot, requested.model, requested.route)) === plainName(served);
}

function servingOwn(slots: EngineSlot[], name: string): EngineSlot[] {
  const serving = slots.filter((slot) => slot.serves(name) || slot.serves(plainName(name)));
  return serving.length > 0 ? serving : slots;
}

/** The rule for the session's work: the client's own labels do not count. */
function homeRoute(routes: readonly EngineRoute[], model: string): EngineRoute | null {
  return routeFor(routes, { model, agent: "main", request_class: "main" });
}

/** Is it the name of other weights here? What no engine knows, as a vendor's small model for titles, is just a name. */
function isAnother(all: readonly EngineSlot[], own: string, requested: string): boolean {
  if (requested === own) return false;
  if (stepOf(requested) !== null && plainName(requested) === plainName(own)) return true;
  return all.some((slot) => slot.serves(requested) || (slot.models !== null && slot.takes(requested) && !slot.takes(own)));
}
