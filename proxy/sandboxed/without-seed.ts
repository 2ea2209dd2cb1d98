/**
 * A seed decides a sample. Where a sandboxed agent is trained it would choose among its samples by it, so it is written
 * down and not passed on; the operator allows it (`allow_fields`), or forces one (`sampling`).
 */
import type { Sampling } from "../../base/schema/message.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";

/** Undefined for a seed that is not passed on. */
export function seedWithheld(
  { sandboxed, purpose, allow_fields }: Pick<SessionSpec, "sandboxed" | "purpose" | "allow_fields">,
  { seed }: Sampling,
): Sampling {
  const isWithheld = sandboxed && purpose === "train" && !allow_fields.includes("seed");
  return isWithheld && seed !== undefined ? { seed: undefined } : {};
}
