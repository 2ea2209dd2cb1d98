/** A failure as the record keeps it, and back. */
import { AlidadeError, asAlidadeError, messageOf } from "../../errors.ts";
import type { ErrorRecord } from "../../schema/session-log.ts";

export function toErrorRecord(error: unknown): ErrorRecord {
  const ours = asAlidadeError(error, "internal");
  return { code: ours.code, message: messageOf(ours), status: ours.status };
}

export function fromErrorRecord({ code, message, status }: ErrorRecord): AlidadeError {
  return new AlidadeError(code as AlidadeError["code"], message, { status: status ?? undefined });
}
