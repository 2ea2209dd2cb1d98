/** The engines that serve a model name, their own name for it, and the policy of its weights. */
import { AlidadeError } from "../../base/errors.ts";
import type { Policy } from "../../base/schema/policy.ts";
import type { EngineSlot } from "./engine-slot.ts";
import type { EngineRoute } from "./routes.ts";

/**
 * Returns the engines that the rule names, else those meant for this model, else those for any model. Draining engines are
 * included: a call for their model must not go to another model.
 */
export function ruled(all: readonly EngineSlot[], model: string, route: EngineRoute | null): EngineSlot[] {
  const names = route?.engine === undefined ? null : [route.engine].flat();
  if (names) return all.filter((slot) => names.includes(slot.name));
  const meant = all.filter((slot) => slot.models !== null && slot.takes(model));
  return meant.length > 0 ? meant : all.filter((slot) => slot.models === null);
}

/** True if a rule leads the name somewhere, or if one of `slots` serves it. */
export function isKnown(slots: readonly EngineSlot[], model: string, route: EngineRoute | null): boolean {
  if (route?.engine !== undefined || route?.engine_model !== undefined) return true;
  return slots.some((slot) => isFor(slot, model));
}

/** True if the engine serves the name, if the operator's globs match it, or if the engine lists no models. */
export function isFor(slot: EngineSlot, model: string): boolean {
  return slot.models !== null || slot.facts.models.length === 0 || slot.serves(model) || slot.serves(plainName(model));
}

/** The first model must not answer for an unknown name: a typing error would train it. */
export function unknownModel(all: readonly EngineSlot[], model: string): AlidadeError {
  return new AlidadeError(
    "model_unknown",
    `no engine serves the model "${model.slice(0, 200)}"; they serve ${servedNames(all)}. Ask for one of these, lead the name to an engine with routes or the engine's models, or open the session with any_model: true (--any-model), where any other name means the first model`,
    { param: "model" },
  );
}

/** Names for a message. Shortened, because a hosted API lists hundreds. */
export function servedNames(slots: readonly EngineSlot[]): string {
  const names = [...new Set(slots.flatMap((slot) => slot.facts.models))];
  const more = names.length > namesTold ? ` and ${names.length - namesTold} more` : "";
  return `${names.slice(0, namesTold).join(", ") || "no model by a name"}${more}`;
}

const namesTold = 20;

/** Engines that serve the model by its name, else those at the step of `name@step`, else those of the policy. */
export function forModel(slots: EngineSlot[], model: string, route: EngineRoute | null): EngineSlot[] {
  const requested = route?.engine_model ?? model;
  const serving = slots.filter((slot) => slot.serves(requested));
  if (serving.length > 0) return serving;
  if (route?.engine_model !== undefined || route?.engine !== undefined) return slots;
  const step = stepOf(model);
  if (step === null) return preferPolicy(slots);
  const at = slots.filter((slot) => {
    const policy = routedPolicy(slot, model, route) ?? slot.policy;
    return policy?.version === step || String(policy?.step) === step;
  });
  if (at.length > 0) return at;
  throw new AlidadeError("model_unknown", `no engine is at "${step}", which ${model} asks for; there are: ${versionsOf(slots)}`, {
    param: "model",
  });
}

/** Without the judges and teachers that stand beside the policy, where something else is left. */
export function preferPolicy(slots: readonly EngineSlot[]): EngineSlot[] {
  const policy = slots.filter((slot) => slot.purpose === "train");
  return policy.length > 0 ? policy : [...slots];
}

export function modelAt(slot: EngineSlot, model: string, route: EngineRoute | null): string {
  if (route?.engine_model !== undefined) return route.engine_model;
  if (slot.serves(model)) return model;
  const plain = plainName(model);
  return slot.serves(plain) ? plain : (slot.facts.models[0] ?? model);
}

/** The policy of a model with weights of its own at the engine: an adapter, or a model served as `name@step`. */
export function routedPolicy(slot: EngineSlot, model: string, route: EngineRoute | null): Policy | null {
  if (route?.policy) return route.policy;
  const served = modelAt(slot, model, route);
  const step = stepOf(served);
  const isOwn = slot.isAdapter(served) || (step !== null && served === (route?.engine_model ?? model) && slot.serves(served));
  return isOwn ? { version: served, step: step !== null && /^\d{1,15}$/.test(step) ? Number(step) : null } : null;
}

/** What stands behind the last `@` of `name@step`. */
export function stepOf(model: string): string | null {
  const at = model.lastIndexOf("@");
  return at > 0 && at < model.length - 1 ? model.slice(at + 1) : null;
}

/** The name of `name@step`: steps of one name are one policy. */
export function plainName(model: string): string {
  return stepOf(model) === null ? model : model.slice(0, model.lastIndexOf("@"));
}

function versionsOf(slots: EngineSlot[]): string {
  return [...new Set(slots.map((slot) => slot.policy?.version ?? "unnamed"))].join(", ");
}
