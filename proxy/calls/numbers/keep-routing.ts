/** Stores the experts that the tokens of a call took, before the log gets the line that names the bytes. */
import { hash } from "node:crypto";
import type { CallFinished } from "../../../base/schema/session-log.ts";
import type { Session } from "../../session/session.ts";
import type { SampledRouting } from "./sampled-routing.ts";

/**
 * A node sends a rollout with its experts as one base64 text, and V8's longest text is half a gigabyte. The limit is enough for
 * 350 000 tokens of the largest models (94 layers, 8 experts each).
 */
export const mostRoutingBytes = 256 * 2 ** 20;

/** Returns the fields of the log. Throws `store_full`, `store_error`. */
export function keepRouting(
  { media, state }: Pick<Session, "media"> & { state: Pick<Session["state"], "numberBytes"> },
  routing: SampledRouting | null,
): Pick<CallFinished, "routing" | "routing_missing"> {
  if (routing === null) return {};
  if ("missing" in routing) return { routing_missing: routing.missing };
  const { bytes, ...shape } = routing;
  if (media === null || state.numberBytes + bytes.length > mostRoutingBytes) return { routing_missing: "not_kept" };
  const sha256 = hash("sha256", bytes);
  media.keep(sha256, bytes);
  return { routing: { sha256, ...shape } };
}
