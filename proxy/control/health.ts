/** How a proxy, a node or a service is: one word, the reasons in sentences, and the status of HTTP that goes with them. */
import type { EngineSlot } from "../pool/engine-slot.ts";
import { preferPolicy } from "../pool/serving.ts";
import type { Controlled } from "./controlled.ts";

/** The word that asks most of an operator comes first. Behind the first three, work is refused or waits for nothing. */
const faultWords = ["down", "alarm", "draining", "degraded", "paused"] as const;
const refusing: readonly string[] = faultWords.slice(0, 3);

export type Fault = { status: (typeof faultWords)[number]; reason: string };
/** `reason` is null where all is well; the reason of `status` comes first. */
export type Health = { status: Fault["status"] | "ok"; reason: string | null };

export function healthOf(faults: readonly Fault[]): Health {
  const ordered = faults.toSorted((one, other) => faultWords.indexOf(one.status) - faultWords.indexOf(other.status));
  return { status: ordered[0]?.status ?? "ok", reason: ordered.map(({ reason }) => reason).join("; ") || null };
}

/** 503: what would be asked now fails. A pause is no failure: calls wait for its end. */
export function statusCodeOf({ status }: Health): 200 | 503 {
  return refusing.includes(status) ? 503 : 200;
}

/** What keeps calls from being sampled. */
export function faultsOfProxy({ pool, fences }: Pick<Controlled, "pool" | "fences">): Fault[] {
  return [...faultsOfEngines(pool.slots), ...fences.status().map(faultOfFence)];
}

/** A judge beside the policy is no engine for its calls. */
function faultsOfEngines(slots: readonly EngineSlot[]): Fault[] {
  if (slots.length === 0) return [{ status: "down", reason: "there is no engine: add one with POST /engines" }];
  const isDown = preferPolicy(slots).every((slot) => faultOfEngine(slot) !== null);
  return slots.flatMap((slot) => {
    const reason = faultOfEngine(slot);
    return reason === null ? [] : [{ status: isDown ? "down" : "degraded", reason }];
  });
}

function faultOfEngine({ name, breaker, isDraining }: EngineSlot): string | null {
  if (breaker.openSince !== null) return `engine ${name} does not answer since ${timeText(breaker.openSince)}`;
  return isDraining ? `engine ${name} is draining: POST /engines/${name}/undrain gives it calls again` : null;
}

function faultOfFence({ fence, engines, seconds, alarm }: ReturnType<Controlled["fences"]["status"]>[number]): Fault {
  const since = timeText(Date.now() - seconds * 1000);
  const reason = `${engines.join(", ")} paused since ${since}: POST /resume with fence ${fence} opens the gate`;
  return { status: alarm ? "alarm" : "paused", reason };
}

/** Unix milliseconds as people and programs read them. */
export function timeText(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
