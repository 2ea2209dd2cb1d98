import type { AlidadeError } from "../../base/errors.ts";
import { isSome, noneLeft } from "../../tasks/sets/index.ts";
import type { OnTaskLeftOut } from "./accepted-tasks.ts";

/** Collects the tasks that a verb leaves out at its steps. Tells each at once, and all of them together if no task is left. */
export class LeftOutTasks {
  readonly #errors: AlidadeError[] = [];
  readonly #tell: OnTaskLeftOut;

  constructor(tell: OnTaskLeftOut) {
    this.#tell = tell;
  }

  readonly add = (error: AlidadeError): void => {
    this.#errors.push(error);
    this.#tell(error);
  };

  /** Throws all reasons if no task is left. */
  assertSome(tasks: readonly unknown[]): void {
    if (tasks.length === 0 && isSome(this.#errors)) throw noneLeft(this.#errors);
  }
}
