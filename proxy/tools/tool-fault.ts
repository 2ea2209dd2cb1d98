/** Why a tool server gave no answer that we can pass on. The model reads the message. */
import type { ToolFailure } from "../../base/schema/log/tool-entries.ts";

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
