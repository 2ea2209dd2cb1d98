/** Stores the tokens that the sampling of a call kept, before the log gets the line that names the bytes. */
import { hash } from "node:crypto";
import type { CallFinished } from "../../../base/schema/session-log.ts";
import type { Session } from "../../session/session.ts";
import { mostRoutingBytes } from "./keep-routing.ts";
import type { SampledSupport } from "./sampled-support.ts";

/** Returns the fields of the log. They count against the same limit as experts do. Throws `store_full`, `store_error`. */
export function keepSupport(
  { media, state }: Pick<Session, "media"> & { state: Pick<Session["state"], "numberBytes"> },
  support: SampledSupport | null,
): Pick<CallFinished, "support" | "support_missing"> {
  if (support === null) return {};
  if ("missing" in support) return { support_missing: support.missing };
  const { bytes, ...shape } = support;
  if (media === null || state.numberBytes + bytes.length > mostRoutingBytes) return { support_missing: "not_kept" };
  const sha256 = hash("sha256", bytes);
  media.keep(sha256, bytes);
  return { support: { sha256, ...shape } };
}
