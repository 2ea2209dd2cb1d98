/** The end of what a build prints, as it is quoted where the build fails. */

/** A compiler's last errors. With the sentence around them it stays below the longest message of an error. */
const mostCharacters = 4_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what colours a terminal is no text
const colours = /\u001b\[[0-9;]*m/g;

export class OutputTail {
  #text = "";
  #isCut = false;

  add(text: string): void {
    this.#text += text;
    if (this.#text.length > 4 * mostCharacters) this.#keep(2 * mostCharacters);
  }

  #keep(characters: number): void {
    this.#isCut ||= this.#text.length > characters;
    // Copied: the end of a string keeps all of it in memory.
    this.#text = Buffer.from(this.#text.slice(-characters)).toString();
  }

  /** Without colours and without a blank end. */
  toString(): string {
    const text = this.#text.replaceAll(colours, "").trimEnd();
    const end = text.slice(-mostCharacters);
    return this.#isCut || end.length < text.length ? `…${end}` : end;
  }
}
