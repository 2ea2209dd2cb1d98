/** What was asked is at odds with what was asked before under the same name. */
import { AlidadeError } from "../../base/errors.ts";

export function conflicting(param: string, message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { param, status: 409 });
}
