/** An unfinished turn is no answer: it is recorded, and the harness gets an error. */
import { AlidadeError } from "../../base/errors.ts";
import type { FinishReason } from "../../base/schema/message.ts";

export type AnswerableFinish = Exclude<FinishReason, "abort" | "error">;

export function answerable(reason: FinishReason): AnswerableFinish {
  if (reason === "abort" || reason === "error")
    throw new AlidadeError("engine_aborted", `The engine ended this turn with finish reason "${reason}"; ask again.`);
  return reason;
}
