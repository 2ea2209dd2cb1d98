import type { AlidadeError } from "../../base/errors.ts";
import { isSome, noneLeft } from "../../tasks/none-left.ts";
import type { OnTaskLeftOut } from "./accepted-tasks.ts";

/** The tasks that a verb leaves out at its steps: each is told at once, and all of them where none is left in the end. */
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

  /** Throws the reasons of all where no task is left. */
  assertSome(tasks: readonly unknown[]): void {
    if (tasks.length === 0 && isSome(this.#errors)) throw noneLeft(this.#errors);
  }
}
