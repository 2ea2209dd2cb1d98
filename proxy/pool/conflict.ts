/** The request does not fit the current state. */
import { AlidadeError } from "../../base/errors.ts";

export function conflict(message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { status: 409 });
}
