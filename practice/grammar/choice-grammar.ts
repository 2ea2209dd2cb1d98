/**
 * vLLM's `structured_outputs: {choice: [...]}`: the text must become one of the choices, in whatever pieces the model
 * samples it. Only ordinary tokens spell a choice; tags are spelled out too, as xgrammar does it.
 */
import { bytesOf, endOfTurn, firstAddedId, vocabularySize } from "../tokenizer/vocabulary.ts";

/** A byte a character, so that pieces compare as strings. */
const spellings = Array.from({ length: firstAddedId }, (_, id) => Buffer.from(bytesOf(id)).toString("latin1"));
const idsBySpelling = new Map(spellings.map((spelling, id) => [spelling, id]));
const longestSpelling = Math.max(...spellings.map((spelling) => spelling.length));

export class ChoiceGrammar {
  /** One entry a token id, 1 where it may come next. Valid until the next `advance`. */
  readonly allowed = new Uint8Array(vocabularySize);
  #open: string[];
  #at = 0;

  constructor(choices: readonly string[]) {
    this.#open = [...new Set(choices)].map((choice) => Buffer.from(choice).toString("latin1"));
    this.#mark();
  }

  advance(id: number): void {
    const spelling = spellings[id] ?? "";
    this.#open = this.#open.filter((choice) => choice.startsWith(spelling, this.#at));
    this.#at += spelling.length;
    this.#mark();
  }

  #mark(): void {
    this.allowed.fill(0);
    for (const choice of this.#open) {
      if (choice.length === this.#at) this.allowed[endOfTurn] = 1;
      const longest = Math.min(longestSpelling, choice.length - this.#at);
      for (let length = 1; length <= longest; length += 1) {
        const id = idsBySpelling.get(choice.slice(this.#at, this.#at + length));
        if (id !== undefined) this.allowed[id] = 1;
      }
    }
  }
}
