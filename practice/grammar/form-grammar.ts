/** Holds a generation to a form: one byte after the other, in whatever pieces the model samples it. */

import { bytesOf, endOfTurn, isHidden, vocabularySize } from "../tokenizer/vocabulary.ts";
import { FormStates, type TextForm } from "./form.ts";

export class FormGrammar {
  /** One entry a token id, 1 where it may come next. Valid until the next `advance`. */
  readonly allowed = new Uint8Array(vocabularySize);
  readonly #states: FormStates;
  #at: readonly number[];

  constructor(form: TextForm) {
    this.#states = new FormStates(form);
    this.#at = this.#states.start;
    this.#mark();
  }

  advance(id: number): void {
    this.#at = this.#after(id);
    this.#mark();
  }

  #after(id: number): readonly number[] {
    let at = this.#at;
    for (const byte of bytesOf(id)) {
      if (at.length === 0) break;
      at = this.#states.step(at, byte);
    }
    return at;
  }

  #mark(): void {
    for (let id = 0; id < vocabularySize; id++) this.allowed[id] = !isHidden(id) && this.#after(id).length > 0 ? 1 : 0;
    this.allowed[endOfTurn] = this.#states.isEnd(this.#at) ? 1 : 0;
  }
}
