/** Stores which experts the tokens of a call took, before the line of the log that names the bytes. */
import { hash } from "node:crypto";
import type { CallFinished } from "../../base/schema/session-log.ts";
import type { Session } from "../session/session.ts";
import type { SampledRouting } from "./sampled-routing.ts";

/** The fields of the log. Throws `store_full`, `store_error`. */
export function keepRouting(
  { media }: Pick<Session, "media">,
  routing: SampledRouting | null,
): Pick<CallFinished, "routing" | "routing_missing"> {
  if (routing === null) return {};
  if ("missing" in routing) return { routing_missing: routing.missing };
  if (media === null) return { routing_missing: "not_kept" };
  const { bytes, ...shape } = routing;
  const sha256 = hash("sha256", bytes);
  media.keep(sha256, bytes);
  return { routing: { sha256, ...shape } };
}
