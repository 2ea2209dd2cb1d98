/** Reads pieces of a byte-level vocabulary: GPT-2's alphabet writes each byte as one printable character. */

/** Printable bytes stand for themselves; the others take the code points from 256 on, in order. */
const byteOf = new Map<string, number>();
for (let byte = 0, next = 256; byte < 256; byte++) {
  const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  byteOf.set(String.fromCodePoint(isPrintable ? byte : next++), byte);
}

/** A piece with a character outside the alphabet is an added token: its text is the piece itself. */
export function bytesOfPiece(piece: string): Buffer {
  const bytes: number[] = [];
  for (const character of piece) {
    const byte = byteOf.get(character);
    if (byte === undefined) return Buffer.from(piece);
    bytes.push(byte);
  }
  return Buffer.from(bytes);
}
