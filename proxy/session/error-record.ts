/** A failure as the record keeps it, and back. */
import { AlidadeError, asAlidadeError, messageOf } from "../../base/errors.ts";
import type { ErrorRecord } from "../../base/schema/session-log.ts";
import { Budgets } from "../../base/schema/session-spec.ts";

export function toErrorRecord(error: unknown): ErrorRecord {
  const ours = asAlidadeError(error, "internal");
  const budget = Budgets.keyof().safeParse(ours.code === "budget_spent" ? ours.param : null).data;
  return { code: ours.code, message: messageOf(ours), status: ours.status, ...(budget && { budget }) };
}

export function fromErrorRecord({ code, message, status, budget }: ErrorRecord): AlidadeError {
  return new AlidadeError(code as AlidadeError["code"], message, { status: status ?? undefined, ...(budget && { param: budget }) });
}
