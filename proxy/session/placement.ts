/** What a session's tries say of where its next calls go. */
import type { Policy } from "../../base/schema/policy.ts";
import type { CallBegun, Tried } from "../../base/schema/session-log.ts";
import { type SessionSpec, workClasses } from "../../base/schema/session-spec.ts";
import type { Placement } from "../pool/own-model.ts";

/** A session remembers only its last few engines. */
const rememberedEngines = 8;

type Since<T> = T & { readonly started: number };

/** By when each try began and not by when it ended: so what runs already counts as it will count when it is in the log. */
export type Tries = {
  readonly engines: readonly Since<{ name: string }>[];
  readonly pinned: Since<{ policy: Policy }> | null;
  readonly began: Since<{ model: string; engine: string }> | null;
};

export const noTries: Tries = { engines: [], pinned: null, began: null };

export function afterTry(tries: Tries, { policy_mode }: SessionSpec, { model, request_class }: CallBegun, tried: Tried): Tries {
  const { engine_name: name, policy = null, started } = tried;
  const isOwn = tried.other_policy === undefined;
  const maySetPin = isOwn && tried.replayed === undefined && policy_mode === "pin";
  return {
    engines: name === null ? tries.engines : withLatest(tries.engines, { name, started }),
    pinned: maySetPin && policy !== null ? earlier(tries.pinned, { policy, started }) : tries.pinned,
    began: isOwn && workClasses.includes(request_class) ? earlier(tries.began, { model, engine: name ?? "", started }) : tries.began,
  };
}

export function placementOf({ engines, pinned, began }: Tries, { pinned_policy }: Pick<SessionSpec, "pinned_policy">): Placement {
  return { engineNames: engines.map(({ name }) => name), pinned: pinned_policy ?? pinned?.policy ?? null, began };
}

function withLatest(engines: Tries["engines"], engine: Tries["engines"][number]): Tries["engines"] {
  const known = engines.find(({ name }) => name === engine.name);
  if (known && known.started > engine.started) return engines;
  const others = engines.filter((one) => one !== known);
  return [engine, ...others].sort((a, b) => b.started - a.started).slice(0, rememberedEngines);
}

function earlier<T>(first: Since<T> | null, other: Since<T>): Since<T> {
  return first === null || other.started < first.started ? other : first;
}
