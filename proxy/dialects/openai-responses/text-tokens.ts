/** Which of the sampled tokens spell a text: reasoning, calls and the end of a turn are tokens too. */
import type { SampledToken } from "../../../base/schema/sampled-token.ts";

/** UTF-8 has no longer character. */
const longestCharacter = 4;
/** Comparisons a token: a text is found in a few, and a turn that repeats itself must not take the square of its length. */
const stepsEach = 50;

/**
 * The first run of tokens that spells `text`: from token `start` to before `end`. null: none does, as where a parser
 * changed what it cut out. A token without bytes may be any part of a character.
 */
export function tokensOfText(tokens: readonly SampledToken[], text: string): { start: number; end: number } | null {
  const wanted = Buffer.from(text);
  const steps = { left: stepsEach * tokens.length };
  for (let start = 0; start < tokens.length && steps.left > 0; start++) {
    const end = spelledFrom(tokens, start, wanted, steps);
    if (end !== null) return { start, end };
  }
  return null;
}

/** Before which token the text ends that begins with token `start`. */
function spelledFrom(tokens: readonly SampledToken[], start: number, wanted: Buffer, steps: { left: number }): number | null {
  let at = 0;
  let unknown = 0;
  for (let index = start; index < tokens.length && steps.left-- > 0; index++) {
    const bytes = tokens[index]?.bytes ?? null;
    if (bytes === null) unknown++;
    else {
      const found = placeOf(Buffer.from(bytes), wanted, at, unknown);
      if (found === null) return areParts(wanted.subarray(at), unknown) ? index : null;
      at = found + bytes.length;
      unknown = 0;
      if (at >= wanted.length) return index + 1;
    }
  }
  return areParts(wanted.subarray(at), unknown) ? tokens.length : null;
}

/** Where the token stands behind `unknown` parts of characters. Its end may stand behind the end of the text, which a stop string cut off. */
function placeOf(token: Buffer, wanted: Buffer, from: number, unknown: number): number | null {
  for (let at = from; at <= Math.min(from + unknown * longestCharacter, wanted.length - 1); at++) {
    const length = Math.min(token.length, wanted.length - at);
    if ((unknown === 0 || areParts(wanted.subarray(from, at), unknown)) && wanted.compare(token, 0, length, at, at + length) === 0)
      return at;
  }
  return null;
}

/** May these bytes be `count` parts of characters of several bytes? */
function areParts(bytes: Buffer, count: number): boolean {
  return count > 0 && bytes.length >= count && bytes.length <= count * longestCharacter && bytes.every((byte) => byte >= 0x80);
}
