/** A turn that the engine did not finish is no answer: it is on the record, and the harness is told so as an error. */
import { AlidadeError } from "../errors.ts";
import type { FinishReason } from "../schema/message.ts";

export type AnswerableFinish = Exclude<FinishReason, "abort" | "error">;

export function answerable(reason: FinishReason): AnswerableFinish {
  if (reason === "abort" || reason === "error")
    throw new AlidadeError("engine_aborted", `The engine ended this turn with finish reason "${reason}"; ask again.`);
  return reason;
}
