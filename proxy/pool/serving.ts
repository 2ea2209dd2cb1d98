/** The engines that serve a model name, their own name for it, and the policy of its weights. */
import { AlidadeError } from "../../base/errors.ts";
import type { Policy } from "../../base/schema/policy.ts";
import type { EngineSlot } from "./engine-slot.ts";
import type { EngineRoute } from "./routes.ts";

/** Engines that the rule names, else those that are for this model, else those for any. */
export function ruled(all: readonly EngineSlot[], model: string, route: EngineRoute | null): EngineSlot[] {
  const slots = all.filter((slot) => !slot.isDraining);
  const names = route?.engine === undefined ? null : [route.engine].flat();
  if (names) return slots.filter((slot) => names.includes(slot.name));
  const meant = slots.filter((slot) => slot.models !== null && slot.takes(model));
  return meant.length > 0 ? meant : slots.filter((slot) => slot.models === null);
}

/** Engines that serve the model by its name, else those at the step of `name@step`, else those of the policy. */
export function forModel(slots: EngineSlot[], model: string, route: EngineRoute | null): EngineSlot[] {
  const requested = route?.engine_model ?? model;
  const serving = slots.filter((slot) => slot.serves(requested));
  if (serving.length > 0) return serving;
  if (route?.engine_model !== undefined || route?.engine !== undefined) return slots;
  const step = stepOf(model);
  if (step === null) return preferPolicy(slots);
  const at = slots.filter((slot) => slot.policy?.version === step || String(slot.policy?.step) === step);
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

/** The policy of a model that has its own name at the engine, as LoRA adapters do. */
export function routedPolicy(slot: EngineSlot, model: string, route: EngineRoute | null): Policy | null {
  if (route?.policy) return route.policy;
  const requested = route?.engine_model ?? model;
  const step = stepOf(requested);
  if (step === null || !slot.serves(requested)) return null;
  return { version: requested, step: /^\d{1,15}$/.test(step) ? Number(step) : null };
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
