/** Stores the numbers of a call's tokens (experts, kept tokens) before the log gets the line that names the bytes. */
import { hash } from "node:crypto";
import type { CallFinished } from "../../../base/schema/session-log.ts";
import type { Session } from "../../session/session.ts";
import type { SampledRouting } from "./sampled-routing.ts";
import type { SampledSupport } from "./sampled-support.ts";

/**
 * For all numbers of a session together. A node sends a rollout with its experts as one base64 text, and V8's longest text is half a
 * gigabyte. The limit is enough for 350 000 tokens of the largest models (94 layers, 8 experts each).
 */
export const mostNumberBytes = 256 * 2 ** 20;

type NumberStore = Pick<Session, "media"> & { state: Pick<Session["state"], "numberBytes"> };

/** Returns the fields of the log. Throws `store_full`, `store_error`. */
export function keepNumbers(
  store: NumberStore,
  { routed, supported }: { routed: SampledRouting | null; supported: SampledSupport | null },
): Pick<CallFinished, "routing" | "routing_missing" | "support" | "support_missing"> {
  const routing = keepBytes(store, routed);
  const support = keepBytes(store, supported);
  return {
    ...(routing && ("missing" in routing ? { routing_missing: routing.missing } : { routing })),
    ...(support && ("missing" in support ? { support_missing: support.missing } : { support })),
  };
}

/** Replaces the bytes by their hash. */
function keepBytes<Made extends { bytes: Buffer }, Reason>(
  { media, state }: NumberStore,
  made: Made | { missing: Reason } | null,
): (Omit<Made, "bytes"> & { sha256: string }) | { missing: Reason | "not_kept" } | null {
  if (made === null || "missing" in made) return made;
  const { bytes, ...shape } = made;
  if (media === null || state.numberBytes + bytes.length > mostNumberBytes) return { missing: "not_kept" };
  const sha256 = hash("sha256", bytes);
  media.keep(sha256, bytes);
  return { sha256, ...shape };
}
