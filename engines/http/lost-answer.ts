/** The request may have left, and no byte of an answer came: what the server sampled for it is not known. */
import { AlidadeError } from "../../base/errors.ts";

export class LostAnswer extends AlidadeError {
  constructor(url: string, why: string, cause: unknown) {
    super("engine_error", `the engine at ${url} closed the connection without an answer: ${why}`, { cause });
  }
}
