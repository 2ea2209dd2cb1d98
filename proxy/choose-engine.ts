/**
 * Which engine a call goes to: those that the rules allow, of these the ones that serve its model and its policy, and of
 * these the one that holds its session's prefix, else the one with the least to do.
 */
import { AlidadeError } from "../errors.ts";
import { nameOfPolicy, samePolicy } from "../schema/same-policy.ts";
import type { Policy, SessionSpec } from "../schema/session-log.ts";
import { assertTrainable, type EngineSlot } from "./engine-slot.ts";
import { type EngineRoute, routeFor } from "./routes.ts";

/** What of a session decides where its calls go; the pool keeps it up to date. */
export type Placed = {
  readonly spec: Pick<SessionSpec, "purpose" | "policy_mode">;
  /** The engines that hold prefixes of it, the last one first: its agents and classes may be at several. */
  engineNames: string[];
  /** Of a pinned session, the policy under which it began. */
  pinned: Policy | null;
};

/** A call that wants an engine. */
export type Wish = { session: Placed; model: string; agent: string; request_class: string };

/** What an engine is asked for: its own name of the model, and whose weights that is where the route says so. */
export type Asked = { model: string; routed: Policy | null };

/** Classes that are trained under no policy: a text-only engine may take them in a training session too. */
const neverTrained: ReadonlySet<string> = new Set(["title", "topic", "quota", "check"]);

/**
 * The engines that may take this call, whether their gates are open or not. Throws `engine_unreachable` where the rules
 * leave none, `engine_without_token_ids`, `model_unknown` for a `name@step` that nobody serves, and `policy_gone` for a
 * pinned session whose policy no engine has any more.
 */
export function candidates(all: readonly EngineSlot[], routes: readonly EngineRoute[], { session, ...question }: Wish): EngineSlot[] {
  const route = routeFor(routes, question);
  let slots = ruled(all, question.model, route);
  if (slots.length === 0) throw nobody(all, question.model, route);
  if (session.spec.purpose === "train" && !neverTrained.has(question.request_class)) {
    const [untrained] = slots;
    slots = slots.filter((slot) => slot.facts.missing === null);
    if (slots.length === 0 && untrained) assertTrainable(untrained.facts);
  }
  slots = forModel(slots, question.model, route);
  const { pinned } = session;
  if (pinned === null || session.spec.policy_mode === "float") return slots;
  const policyAt = (slot: EngineSlot): Policy | null => routedPolicy(slot, question.model, route) ?? slot.policy;
  const same = slots.filter((slot) => samePolicy(policyAt(slot), pinned));
  if (same.length > 0) return same;
  throw new AlidadeError(
    "policy_gone",
    `this session is pinned to policy ${nameOfPolicy(pinned)}, which no engine serves any more (there are: ${[...new Set(slots.map((slot) => nameOfPolicy(policyAt(slot))))].join(", ")}): open another one`,
  );
}

/** One of them; `avoid` are those that have just failed this call, taken only where there is no other. */
export function pick(among: EngineSlot[], { session }: Wish, avoid: ReadonlySet<EngineSlot>): EngineSlot {
  const fresh = among.filter((slot) => !avoid.has(slot));
  const open = fresh.filter((slot) => slot.gate === null && !slot.breaker.isOpen);
  // Where all of them are unwell the call still goes to one: its own error is the truth about it.
  const best = [open, fresh, among].find((list) => list.length > 0) as EngineSlot[];
  for (const name of session.engineNames) {
    const home = best.find((slot) => slot.name === name);
    if (home) return home;
  }
  return leastLoaded(best);
}

/** What this engine is asked for when it takes the call. */
export function askedOf(slot: EngineSlot, routes: readonly EngineRoute[], wish: Wish): Asked {
  const route = routeFor(routes, wish);
  return { model: modelAt(slot, wish.model, route), routed: routedPolicy(slot, wish.model, route) };
}

/** Engines that the rule names, else those that are for this model, else those for any. */
function ruled(all: readonly EngineSlot[], model: string, route: EngineRoute | null): EngineSlot[] {
  const slots = all.filter((slot) => !slot.isDraining);
  const names = route?.engine === undefined ? null : [route.engine].flat();
  if (names) return slots.filter((slot) => names.includes(slot.name));
  const meant = slots.filter((slot) => slot.models !== null && slot.takes(model));
  return meant.length > 0 ? meant : slots.filter((slot) => slot.models === null);
}

/** Engines that serve the model by its name, else those at the step that `name@step` asks for, else all. */
function forModel(slots: EngineSlot[], model: string, route: EngineRoute | null): EngineSlot[] {
  const asked = route?.engine_model ?? model;
  const serving = slots.filter((slot) => slot.serves(asked));
  if (serving.length > 0 || route?.engine_model !== undefined) return serving.length > 0 ? serving : slots;
  const step = stepOf(model);
  if (step === null) return slots;
  const at = slots.filter((slot) => slot.policy?.version === step || String(slot.policy?.step) === step);
  if (at.length > 0) return at;
  throw new AlidadeError("model_unknown", `no engine is at "${step}", which ${model} asks for; there are: ${versionsOf(slots)}`, {
    param: "model",
  });
}

function modelAt(slot: EngineSlot, model: string, route: EngineRoute | null): string {
  if (route?.engine_model !== undefined) return route.engine_model;
  if (slot.serves(model)) return model;
  const plain = stepOf(model) === null ? model : model.slice(0, model.lastIndexOf("@"));
  return slot.serves(plain) ? plain : (slot.facts.models[0] ?? model);
}

/** The policy of a model that has its own name at the engine, as LoRA adapters do. */
function routedPolicy(slot: EngineSlot, model: string, route: EngineRoute | null): Policy | null {
  if (route?.policy) return route.policy;
  const asked = route?.engine_model ?? model;
  const step = stepOf(asked);
  if (step === null || !slot.serves(asked)) return null;
  return { version: asked, step: /^\d{1,15}$/.test(step) ? Number(step) : null };
}

/** Of equally busy ones the one that has waited longest for a call. */
function leastLoaded(slots: EngineSlot[]): EngineSlot {
  return slots.reduce((best, slot) => {
    const difference = slot.inFlight.size - best.inFlight.size || slot.lastLease - best.lastLease;
    return difference < 0 ? slot : best;
  });
}

/** What stands behind the last `@` of `name@step`. */
function stepOf(model: string): string | null {
  const at = model.lastIndexOf("@");
  return at > 0 && at < model.length - 1 ? model.slice(at + 1) : null;
}

function versionsOf(slots: EngineSlot[]): string {
  return [...new Set(slots.map((slot) => slot.policy?.version ?? "unnamed"))].join(", ");
}

function nobody(all: readonly EngineSlot[], model: string, route: EngineRoute | null): AlidadeError {
  const names = all.map((slot) => `${slot.name}${slot.isDraining ? " (draining)" : ""}`).join(", ") || "none";
  const rule = route?.engine === undefined ? "" : ` (its route names ${[route.engine].flat().join(", ")})`;
  return new AlidadeError("engine_unreachable", `there is no engine for model "${model}"${rule}; engines: ${names}`);
}
