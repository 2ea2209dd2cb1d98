/**
 * Byte-level byte-pair encoding. Tokens 0 to 255 are the bytes themselves, so every byte string has an encoding and a
 * token may well be a part of a character; token 256 + i is the i-th merge.
 */

/** Prompts repeat their words; what does not repeat must not pile up. */
const maxWordsKept = 20_000;

export class BytePairs {
  /** The bytes of each token. */
  readonly bytes: readonly Uint8Array[];
  /** The pair `left * 65536 + right` gives the token that it becomes; a lower token was learned earlier and goes first. */
  readonly #merges = new Map<number, number>();
  readonly #words = new Map<string, readonly number[]>();

  /** `merges` is flat: left, right, left, right, … */
  constructor(merges: readonly number[]) {
    const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
    for (let at = 0; at + 1 < merges.length; at += 2) {
      const left = merges[at] as number;
      const right = merges[at + 1] as number;
      this.#merges.set(pairKey(left, right), bytes.length);
      bytes.push(Uint8Array.of(...(bytes[left] as Uint8Array), ...(bytes[right] as Uint8Array)));
    }
    this.bytes = bytes;
  }

  encode(bytes: Uint8Array): number[] {
    const ids: number[] = [];
    for (const word of toWords(bytes)) for (const id of this.#encodeWord(word)) ids.push(id);
    return ids;
  }

  #encodeWord(word: string): readonly number[] {
    const known = this.#words.get(word);
    if (known !== undefined) return known;
    const ids = Array.from(word, (letter) => letter.charCodeAt(0));
    for (let at = this.#firstMerge(ids); at !== -1; at = this.#firstMerge(ids))
      ids.splice(at, 2, this.#merges.get(pairKey(ids[at] as number, ids[at + 1] as number)) as number);
    if (this.#words.size >= maxWordsKept) this.#words.clear();
    this.#words.set(word, ids);
    return ids;
  }

  /** Where the pair stands that was learned first, or -1. */
  #firstMerge(ids: readonly number[]): number {
    let first = Number.POSITIVE_INFINITY;
    let place = -1;
    for (let at = 0; at + 1 < ids.length; at += 1) {
      const merged = this.#merges.get(pairKey(ids[at] as number, ids[at + 1] as number));
      if (merged === undefined || merged >= first) continue;
      first = merged;
      place = at;
    }
    return place;
  }
}

/**
 * Words as they are merged within: letters with the space before them, single digits, punctuation, white space. Bytes
 * above 127 count as letters. Length is bounded, because merging costs its square. One character stands for one byte.
 */
const word = / ?[A-Za-z\x80-\xff]{1,48}|[0-9]| ?[!-/:-@[-`{-~]{1,48}|[ \t]{0,48}[\r\n]{1,48}|[ \t]{1,48}(?![^ \t\r\n])|./gs;

export function toWords(bytes: Uint8Array): string[] {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1").match(word) ?? [];
}

export function pairKey(left: number, right: number): number {
  return left * 65536 + right;
}
