/**
 * A tokenizer for tests of templates: what stands in angle brackets (or in a bracket of Mistral's or MiniMax's) is one
 * token, and so is a run of white space or of letters, so that a cut in the wrong place shows. Ids are given out as texts
 * come up.
 */
export class ToyTokenizer {
  readonly #ids = new Map<string, number>();
  readonly #texts: string[] = [];

  encode(text: string): number[] {
    return (text.match(pieces) ?? []).map((piece) => {
      let id = this.#ids.get(piece);
      if (id === undefined) {
        id = this.#texts.push(piece) - 1;
        this.#ids.set(piece, id);
      }
      return id;
    });
  }

  decode(ids: readonly number[]): string {
    return ids.map((id) => this.#texts[id]).join("");
  }

  isSpecial(id: number): boolean {
    return /^(<\S+>|\[\S+[[\]])$/.test(this.#texts[id] ?? "");
  }
}

const pieces = /<[^<>\s]{1,60}>|\[\/?[A-Z_]{2,40}\]|\]~b\]|\[e~\[|\s+|\p{L}+|./gsu;
