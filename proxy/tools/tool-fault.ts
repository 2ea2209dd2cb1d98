/** Why a service of tools gave no answer that can be handed on. The message is read by the model. */
import type { ToolFailure } from "../../base/schema/session-log.ts";

export class ToolFault extends Error {
  readonly failure: ToolFailure;

  constructor(failure: ToolFailure, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ToolFault";
    this.failure = failure;
  }
}

export function tooLarge(limit: number): ToolFault {
  return new ToolFault("too_large", `the answer has more than ${limit} bytes`);
}
