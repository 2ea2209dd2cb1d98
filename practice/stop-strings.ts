/** Ends a text at the first of some strings. The string itself is not sent, although its tokens were sampled. */
import { heldBack } from "./turn-parser.ts";

export class StopStrings {
  readonly #stops: readonly string[];
  #held = "";

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** Text that no stop string can reach any more, and the string that was met. */
  feed(text: string): { text: string; stop: string | null } {
    this.#held += text;
    const met = this.#stops
      .map((stop) => ({ stop, at: this.#held.indexOf(stop) }))
      .filter(({ at }) => at !== -1)
      .sort((one, other) => one.at - other.at)[0];
    const end = met?.at ?? this.#held.length - heldBack(this.#held, this.#stops);
    const ready = this.#held.slice(0, end);
    this.#held = met === undefined ? this.#held.slice(end) : "";
    return { text: ready, stop: met?.stop ?? null };
  }

  finish(): string {
    return this.#held;
  }
}
