/**
 * Text that comes token by token. As a string with `+=` it would be a chain that keeps every piece, and all that the
 * piece was cut out of; with a thousand streams at once that is most of what they hold.
 */
export class GrowingText {
  #text = "";
  #pieces: string[] = [];

  append(piece: string): void {
    if (this.#pieces.push(piece) === piecesAtOnce) this.#join();
  }

  toString(): string {
    if (this.#pieces.length > 0) this.#join();
    return this.#text;
  }

  #join(): void {
    this.#text += this.#pieces.join("");
    this.#pieces = [];
  }
}

/** A hundred characters or so at a time: few pieces to hold, and few joins. */
const piecesAtOnce = 32;
