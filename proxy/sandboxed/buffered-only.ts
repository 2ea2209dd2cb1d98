/** A live answer shows a turn before its end: an agent could act on the part of it that it likes and leave the rest. */
import { AlidadeError } from "../../base/errors.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";

/** Throws `request_invalid` for a sandboxed session whose answers would be live. */
export function assertBuffered({ sandboxed, relay }: Partial<Pick<SessionSpec, "sandboxed" | "relay">>): void {
  if (!sandboxed || relay !== "live") return;
  throw new AlidadeError("request_invalid", 'relay is "live": a sandboxed session gets whole answers only; leave relay out', {
    param: "relay",
  });
}
