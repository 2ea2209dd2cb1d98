/** What is asked for does not fit what is there now. */
import { AlidadeError } from "../../errors.ts";

export function conflict(message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { status: 409 });
}
